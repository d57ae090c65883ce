"""A bundle behind Ray Serve: requests that come together run together, and what is too much is refused with a 503.

    python examples/serve/app.py build/resnet18 --replicas 2

POST /predict takes the bytes of a picture or an .npy file, and answers the classes with the largest scores as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
from ray import serve
from ray.serve.config import BackpressureConfig
from starlette.responses import JSONResponse

import opwright

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_BYTES = 16 * 2**20
# Of the host's codes, those that a caller can do something about begin so.
FAULTS_OF_CALLERS = "input_"
# Each replica has one batch at work and one that fills. Serve keeps as many again waiting, and refuses the rest.
BATCH = 8
BATCHES_AHEAD = 2


@serve.deployment(
    max_ongoing_requests=BATCHES_AHEAD * BATCH,
    max_queued_requests=BATCHES_AHEAD * BATCH,
    backpressure_config=BackpressureConfig(status_code=503, retry_after_s=1),
    ray_actor_options={"num_cpus": 1},
)
class Classifier:
    """Answers requests with the classes that have the largest scores.

    Args:
        bundle: the folder of a bundle whose first output is scores (B, classes).
        batch: how many requests run together at most.
        threads: how many threads one run of the model computes with.
        top_k: how many classes an answer has.
    """

    def __init__(self, bundle: str, batch: int = BATCH, threads: int = 1, top_k: int = 5) -> None:
        self._predictor = opwright.Predictor(bundle, batch=batch, threads=threads, on_error="keep")
        self._top_k = top_k
        self._predictor.start()  # a replica is ready when its model is

    async def __call__(self, request: Request) -> JSONResponse:
        """The answer to a request."""
        if request.method != "POST":
            return _refusal(405, "usage", "expected a POST with the bytes of a picture or an .npy file")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                return _refusal(413, "usage", f"expected at most {MOST_BYTES} bytes")
        row = await self._run(body)
        if row["status"] != "ok":
            code = 400 if row["status"].startswith(FAULTS_OF_CALLERS) else 500
            return _refusal(code, row["status"], row["error"])
        scores = next(value for name, value in row.items() if name not in {"status", "error"}).ravel()
        best = np.argsort(-scores, kind="stable")[: self._top_k]
        # JSON has no NaN and no infinity.
        found = [(int(place), float(scores[place])) for place in best]
        top = [{"class": place, "score": score if math.isfinite(score) else None} for place, score in found]
        return JSONResponse({"top": top})

    @serve.batch(max_batch_size=BATCH, batch_wait_timeout_s=0.005)
    async def _run(self, bodies: list[bytes]) -> list[dict[str, Any]]:
        """A row of results for each body. A body that fails, or crashes an operator, is an error of its row alone."""
        return await asyncio.to_thread(self._predictor.rows, bodies)


def _refusal(code: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"kind": kind, "message": message}}, status_code=code)


def application(bundle: str, replicas: int = 1, threads: int = 1) -> serve.Application:
    """The application for `serve.run`."""
    deployment: Any = Classifier  # a deployment, where types see the class that became one
    found: serve.Application = deployment.options(num_replicas=replicas).bind(bundle, threads=threads)
    return found


def main() -> None:
    """Serve a bundle on loopback until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Serve a bundle on loopback.")
    parser.add_argument("bundle")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    # A cluster of its own, whatever else runs here.
    ray.init("local", include_dashboard=False)
    serve.start(http_options={"host": "127.0.0.1", "port": arguments.port})
    serve.run(application(arguments.bundle, arguments.replicas, arguments.threads), route_prefix="/predict")
    print(f"POST http://127.0.0.1:{arguments.port}/predict", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        serve.shutdown()


if __name__ == "__main__":
    main()
