"""Drives a host: sends requests as bytes, and reads the answers as arrays."""

from __future__ import annotations

import io
import json
import select
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tests.integration.host.conftest import CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# Longer than anything takes: a misbehaving host fails the test instead of blocking it.
_LONG = 120
# A row's inputs: a path, or the bytes of a file.
Given = dict[str, str | bytes]


@dataclass(frozen=True)
class Answer:
    """The answer to one row: its line, and its outputs by name."""

    line: Any
    outputs: dict[str, Any]

    @property
    def place(self) -> tuple[int, int]:
        return self.line["request"], self.line["row"]

    @property
    def error(self) -> tuple[str, str] | None:
        """The kind and the message."""
        error = self.line.get("error")
        if error is None:
            return None
        assert CODES[error["code"]] == error["kind"]
        return error["kind"], error["message"]


@dataclass(frozen=True)
class Streamed:
    """The output of a host: its ready line, its answers, the error that ended it, and its exit."""

    ready: Any
    answers: list[Answer]
    fatal: Any
    stderr: str
    exit_code: int


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def request(*rows: Given, batch: bool = False) -> bytes:
    """Return one request: a line, and the bytes that follow it."""
    lines = [
        {"inputs": {name: {"bytes": len(value)} if isinstance(value, bytes) else value for name, value in row.items()}}
        for row in rows
    ]
    line = {"batch": lines} if batch or len(rows) > 1 else lines[0]
    return json.dumps(line).encode() + b"\n" + b"".join(v for row in rows for v in row.values() if isinstance(v, bytes))


def read_answer(file: IO[bytes]) -> Answer | None:
    """Return the next answer; None at the end."""
    text = file.readline()
    if not text:
        return None
    line = json.loads(text)
    outputs = {}
    for output in line.get("outputs", []):
        content = b""
        while len(content) < output["bytes"] and (piece := file.read(output["bytes"] - len(content))):
            content += piece  # a pipe returns what is available
        assert len(content) == output["bytes"]
        outputs[output["name"]] = np.frombuffer(content, dtype=output["dtype"]).reshape(output["shape"])
    return Answer(line, outputs)


class Driven:
    """A host that receives one request after another."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process, self.stdin, self.stdout, self._stderr = process, process.stdin, process.stdout, process.stderr

    def ask(self, *requests: bytes) -> None:
        self.stdin.write(b"".join(requests))
        self.stdin.flush()

    def answer(self) -> Answer:
        assert select.select([self.stdout], [], [], _LONG)[0], "the host does not answer"
        answer = read_answer(self.stdout)
        assert answer
        return answer

    def end(self) -> tuple[int, str]:
        """Return the exit code and the text on standard error."""
        return self._process.wait(_LONG), self._stderr.read().decode()


@contextmanager
def driven(program: Path, bundle: Path) -> Iterator[Driven]:
    """A host that is ready."""
    pipe = subprocess.PIPE
    with subprocess.Popen([program, bundle, "--stream"], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
        try:
            host = Driven(process)
            assert "ready" in json.loads(host.stdout.readline())
            yield host
        finally:
            process.kill()


def stream(
    program: Path,
    bundle: Path,
    requests: bytes | Iterable[bytes],
    *words: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Streamed:
    """Runs a host on a whole stream."""
    content = requests if isinstance(requests, bytes) else b"".join(requests)
    command: list[str | Path] = [program, bundle, "--stream", *words]
    done = subprocess.run(command, input=content, capture_output=True, check=False, env=env, cwd=cwd)
    file = io.BytesIO(done.stdout)
    ready = json.loads(file.readline() or b"null")
    answers, fatal = [], None
    while (answer := read_answer(file)) is not None:
        assert fatal is None, "something follows the error that ended the stream"
        if "request" in answer.line:
            answers.append(answer)
        else:
            fatal = answer.line["error"]
    return Streamed(ready, answers, fatal, done.stderr.decode(), done.returncode)
