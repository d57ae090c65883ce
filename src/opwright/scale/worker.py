"""One host in a process of its own, which answers units as they come."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from opwright.errors import MapError
from opwright.scale.rows import Answer, Array, Failure
from opwright.toolchain.run import start_piped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from opwright.scale.rows import Unit
    from opwright.scale.work import Limits

# Enough that a worker never waits for the driver; few enough to try again alone after a crash.
_UNITS_AHEAD = 16
_BYTES_AHEAD = 2**26
_PIECE = 2**20
_STDERR_TAIL = 2**16
_LAST_WORDS = re.compile(r"^host: the process was ended by (?P<cause>.*?), while it \w+ .*$", re.MULTILINE)
_HOST_ERROR = re.compile(r"^host: (?P<message>.*)$", re.MULTILINE)


class HostEndedError(Exception):
    """The host ended, or was ended, before it had answered everything.

    Attributes:
        unanswered: the units that it was given and had not answered, in their order.
        reason: what ended it, in words.
        was_killed: whether another process ended it, or the system did because memory ran out.
    """

    def __init__(self, unanswered: Sequence[Unit], reason: str, *, was_killed: bool) -> None:
        super().__init__(reason)
        self.unanswered = unanswered
        self.reason = reason
        self.was_killed = was_killed


class Worker:
    """A running host.

    Args:
        command: the host's program and the bundle.
        threads: how many threads one run computes with.
        limits: what the host may use.
        folder: where the paths of inputs begin.

    Raises:
        MapError: the host refuses the bundle.
        HostEndedError: it ended while it loaded the bundle.
    """

    def __init__(self, command: Sequence[str | Path], threads: int, limits: Limits, folder: Path) -> None:
        memory = [] if limits.memory_bytes is None else ["--memory-limit", str(limits.memory_bytes)]
        self._process = start_piped([*command, "--stream", "--threads", str(threads), *memory], cwd=folder)
        self._timeout_s = limits.timeout_s
        self._sent: deque[_Sent] = deque()
        self._received = bytearray()
        self._written: deque[memoryview] = deque()
        self._complaints = bytearray()
        self._selector = selectors.DefaultSelector()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
        self._is_asking = False
        self._waited_s = 0.0
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The number of the host's process."""
        return self._process.pid

    def answers(self, units: Iterable[Unit]) -> Iterator[list[Answer]]:
        """The answers to units, in their order, a list for each; units are taken ahead of their answers.

        Raises:
            HostEndedError: the host ended; it is of no further use.
        """
        waiting = iter(units)
        more = True
        self._waited_s = 0.0
        while True:
            while more and self._has_room():
                unit = next(waiting, None)
                if unit is None:
                    more = False
                else:
                    self._ask(unit)
            while self._sent and self._sent[0].is_answered():
                yield self._sent.popleft().answers
                self._waited_s = 0.0
            if self._sent:
                # Before more units are taken: that may take long.
                self._exchange(self._timeout_s)
            elif not more:
                return

    def kill(self) -> None:
        """End the host, from any thread; reading its answers fails then."""
        self._process.kill()

    def close(self) -> None:
        """End the host: at once if it is at work."""
        self._selector.close()
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._process.kill()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def forget(self) -> None:
        """In a forked process: close its copies of the pipes, and leave the host to the process that started it."""
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0  # it is no child of this process, which must not wait for it

    def _wait_until_ready(self) -> None:
        while (line := self._line()) is None:
            self._exchange(None)
        said = json.loads(line)
        if error := said.get("error"):
            msg = f"the host does not run the bundle: {error['message']} ({error['kind']})"
            raise MapError(msg)

    def _has_room(self) -> bool:
        if len(self._sent) >= _UNITS_AHEAD:
            return False
        return not self._sent or sum(sent.size for sent in self._sent) < _BYTES_AHEAD

    def _ask(self, unit: Unit) -> None:
        pieces = _request(unit) if unit else []
        self._sent.append(_Sent(unit, sum(map(len, pieces))))
        self._written.extend(map(memoryview, pieces))
        self._follow_stdin()

    def _follow_stdin(self) -> None:
        """Watch standard input while there is something to write, and else not: it could always be written."""
        pipe = self._process.stdin
        if pipe is not None and bool(self._written) != self._is_asking:
            self._is_asking = not self._is_asking
            if self._is_asking:
                self._selector.register(pipe, selectors.EVENT_WRITE)
            else:
                self._selector.unregister(pipe)

    def _exchange(self, timeout_s: float | None) -> None:
        """Wait until something can be read or written, and do so.

        The time limit is for the waiting alone, since the last answer: to make units and to use answers takes time that
        is not the host's.
        """
        began = time.monotonic()
        ready = self._selector.select(None if timeout_s is None else max(0.0, timeout_s - self._waited_s))
        self._waited_s += time.monotonic() - began
        if not ready:
            self._process.kill()
            cause = f"gave no answer within {self._timeout_s:g} s"
            raise self._ended(cause)
        for key, _ in ready:
            if key.fileobj is self._process.stdin:
                self._write()
            elif key.fileobj is self._process.stderr:
                self._read_complaints()
            else:
                self._read()
        self._take_answers()

    def _write(self) -> None:
        try:
            while self._written:
                done = os.writev(self._fd("stdin"), list(self._written)[:64])
                while self._written and done >= len(self._written[0]):
                    done -= len(self._written.popleft())
                if done:
                    self._written[0] = self._written[0][done:]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._written.clear()  # it has ended: reading says so
        self._follow_stdin()

    def _read(self) -> None:
        read = os.read(self._fd("stdout"), _PIECE)
        if not read:
            raise self._ended(None)
        self._received += read

    def _read_complaints(self) -> None:
        read = os.read(self._fd("stderr"), _PIECE)
        if not read and self._process.stderr is not None:
            self._selector.unregister(self._process.stderr)
        self._complaints += read
        del self._complaints[:-_STDERR_TAIL]

    def _fd(self, name: str) -> int:
        pipe = getattr(self._process, name)
        return int(pipe.fileno())

    def _line(self) -> bytes | None:
        end = self._received.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _take_answers(self) -> None:
        for sent in self._sent:
            while not sent.is_answered():
                if (answer := self._take_answer()) is None:
                    return
                sent.answers.append(answer)

    def _take_answer(self) -> Answer | None:
        """The next answer that is there as a whole."""
        end = self._received.find(b"\n")
        if end < 0:
            return None
        said = json.loads(bytes(self._received[:end]))
        if error := said.get("error"):
            del self._received[: end + 1]
            return Answer(failure=Failure(error["kind"], error["message"]))
        place = end + 1
        if len(self._received) < place + sum(output["bytes"] for output in said["outputs"]):
            return None
        outputs = []
        for output in said["outputs"]:
            data = bytes(self._received[place : place + output["bytes"]])
            outputs.append(Array(output["dtype"], tuple(output["shape"]), data))
            place += output["bytes"]
        del self._received[:place]
        return Answer(tuple(outputs), None, said["seconds"])

    def _ended(self, cause: str | None) -> HostEndedError:
        """The exception for a host that has ended, after what it still said was read."""
        self._process.wait()
        with contextlib.suppress(BlockingIOError):
            while read := os.read(self._fd("stderr"), _PIECE):
                self._complaints += read
        text = self._complaints.decode(errors="replace")
        status = self._process.returncode
        reason = cause or _reason(text, status)
        # Also those without rows, which need no answer: each unit has its place among the answers.
        unanswered = [sent.unit for sent in self._sent]
        was_killed = cause is None and status in {-signal.SIGKILL, -signal.SIGTERM} and not _LAST_WORDS.search(text)
        return HostEndedError(unanswered, reason, was_killed=was_killed)


class _Sent:
    """A unit on its way."""

    def __init__(self, unit: Unit, size: int) -> None:
        self.unit = unit
        self.size = size
        self.answers: list[Answer] = []

    def is_answered(self) -> bool:
        return len(self.answers) == len(self.unit)


def _request(unit: Unit) -> list[bytes]:
    """A unit as the host reads it: a line of JSON, and the bytes that it announces."""
    pieces: list[bytes] = []
    rows: list[Any] = []
    for row in unit:
        inputs: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, bytes):
                pieces.append(value)
                inputs[name] = {"bytes": len(value)}
            else:
                inputs[name] = value
        rows.append({"inputs": inputs})
    line = json.dumps(rows[0] if len(rows) == 1 else {"batch": rows})
    return [line.encode() + b"\n", *filter(None, pieces)]


def _reason(complaints: str, status: int) -> str:
    """Why a host ended, from what it printed and from its exit status."""
    if words := [*_LAST_WORDS.finditer(complaints)]:
        return f"was ended by {words[-1]['cause']}"
    if status < 0:
        name = signal.Signals(-status).name if -status in {*map(int, signal.Signals)} else f"signal {-status}"
        return f"was ended by {name}"
    said = [*_HOST_ERROR.finditer(complaints)]
    return f"exited with {status}" + (f": {said[-1]['message']}" if said else "")
