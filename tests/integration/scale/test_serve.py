"""The serving example: correct answers, errors that name the problem, and 503s for excess requests."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.needs("ray"), pytest.mark.sample(of="long", by="file")]

APP = Path(__file__).parents[3] / "examples/serve/app.py"


class Reply(NamedTuple):
    """An answer over HTTP."""

    code: int
    body: str
    retry_after: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Application:
    """The running example."""

    def __init__(self, port: int) -> None:
        self._port = port

    def post(self, body: bytes | Iterator[bytes]) -> Reply:
        return self._ask("POST", body)

    def get(self) -> Reply:
        return self._ask("GET", None)

    def _ask(self, method: str, body: bytes | Iterator[bytes] | None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, "/predict", body)
            answer = connection.getresponse()
            return Reply(answer.status, answer.read().decode(), answer.headers["Retry-After"])


@pytest.fixture(scope="module")
def application(fragile: Path) -> Iterator[Application]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Ray creates sockets in this folder, and a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, APP, fragile, "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "RAY_TMPDIR": folder},
            start_new_session=True,
        )
        with process, contextlib.ExitStack() as ending:
            ending.callback(process.send_signal, signal.SIGINT)
            assert process.stdout
            said = []
            for line in process.stdout:
                said.append(line)
                if line.startswith("POST "):
                    break
            else:
                pytest.fail("".join(said))
            # Keep reading its output, so that it never blocks.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield Application(port)


def npy(value: float, dtype: str = "float32") -> bytes:
    """An image of one color, as a file."""
    file = io.BytesIO()
    np.save(file, np.full((1, 3, 8, 8), value, dtype))
    return file.getvalue()


def test_a_request_is_answered_with_the_highest_scores(application: Application) -> None:
    reply = application.post(npy(3))
    assert (reply.code, reply.json) == (200, {"top": [{"class": place, "score": 6.0} for place in range(3)]})


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            b"no picture",
            "input_unreadable",
            "the content of the input image cannot be read: it is not an .npy, JPEG or PNG file",
        ),
        (npy(3, "float64"), "input_dtype", "the input image has the dtype float64; expected float32"),
    ],
)
def test_a_bad_picture_is_a_client_error_with_the_hosts_message(
    application: Application, body: bytes, kind: str, message: str
) -> None:
    reply = application.post(body)
    assert (reply.code, reply.json) == (400, {"error": {"kind": kind, "message": message}})


def test_a_request_that_is_not_a_post_is_rejected(application: Application) -> None:
    assert application.get().code == 405


@pytest.mark.parametrize("says_its_size", [True, False])
def test_a_body_that_is_too_large_is_rejected(application: Application, says_its_size: bool) -> None:
    pieces = (bytes(2**20) for _ in range(17))
    reply = application.post(b"".join(pieces) if says_its_size else pieces)
    error = {"kind": "usage", "message": "expected at most 16777216 bytes"}
    assert (reply.code, reply.json) == (413, {"error": error})


def test_a_crash_of_an_operator_fails_only_its_request(application: Application) -> None:
    with ThreadPoolExecutor(8) as threads:
        replies = [*threads.map(application.post, [npy(13 if place == 5 else place) for place in range(8)])]
    assert [reply.code for reply in replies] == [*[200] * 5, 500, 200, 200]
    assert "was ended by SIGSEGV" in replies[5].json["error"]["message"]
    assert replies[7].json["top"][0]["score"] == 14


def test_excess_requests_are_answered_or_receive_a_retry_time(application: Application) -> None:
    body = npy(0)[:-4] + np.float32(14).tobytes()  # each waits for 20 ms in the operator
    with ThreadPoolExecutor(150) as threads:
        replies = [*threads.map(application.post, [body] * 600)]
    counts = Counter(reply.code for reply in replies)
    assert set(counts) == {200, 503}
    assert {reply.retry_after for reply in replies if reply.code == 503} == {"1"}
    assert application.post(npy(1)).code == 200
