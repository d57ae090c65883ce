"""Serves a bundle with Ray Serve: concurrent requests run in batches, and excess requests receive a 503.

    python examples/serve/app.py build/resnet18 --replicas 2

POST /predict accepts the bytes of a picture or an .npy file, and returns the classes with the highest scores as JSON.
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
# The host's exit codes for errors that the caller can fix start with this.
FAULTS_OF_CALLERS = "input_"
# Each replica runs one batch while another one fills. Serve queues the same number of requests, and rejects the rest.
BATCH = 8
BATCHES_AHEAD = 2


@serve.deployment(
    max_ongoing_requests=BATCHES_AHEAD * BATCH,
    max_queued_requests=BATCHES_AHEAD * BATCH,
    backpressure_config=BackpressureConfig(status_code=503, retry_after_s=1),
    ray_actor_options={"num_cpus": 1},
)
class Classifier:
    """Answers requests with the classes that have the highest scores.

    Args:
        bundle: the folder of a bundle whose first output is scores (B, classes).
        batch: the largest number of requests that run together.
        threads: the number of threads that one run of the model uses.
        top_k: the number of classes in an answer.
    """

    def __init__(self, bundle: str, batch: int = BATCH, threads: int = 1, top_k: int = 5) -> None:
        self._predictor = opwright.Predictor(bundle, batch=batch, threads=threads, on_error="keep")
        self._top_k = top_k
        self._predictor.start()  # a replica is ready once its model is

    async def __call__(self, request: Request) -> JSONResponse:
        """Answer a request."""
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
        # JSON has neither NaN nor infinity.
        found = [(int(place), float(scores[place])) for place in best]
        top = [{"class": place, "score": score if math.isfinite(score) else None} for place, score in found]
        return JSONResponse({"top": top})

    @serve.batch(max_batch_size=BATCH, batch_wait_timeout_s=0.005)
    async def _run(self, bodies: list[bytes]) -> list[dict[str, Any]]:
        """Run the bodies. If one is invalid or crashes an operator, only its own row has an error."""
        return await asyncio.to_thread(self._predictor.rows, bodies)


def _refusal(code: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"kind": kind, "message": message}}, status_code=code)


def application(bundle: str, replicas: int = 1, threads: int = 1) -> serve.Application:
    """The application for `serve.run`."""
    deployment: Any = Classifier  # a deployment, although type checkers see the class
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
    # A separate cluster, independent of any other on this machine.
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
