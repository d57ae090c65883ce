"""The process of a host: its non-blocking streams, and the reason for its exit."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
from collections import deque
from typing import TYPE_CHECKING

from opwright.toolchain.run import start_piped
from opwright.toolchain.signals import signal_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_PIECE = 2**20
_MOST_PIECES = 64  # in one write: far below the limit of Linux
_STDERR_TAIL = 2**16
_LAST_WORDS = re.compile(r"^host: the process was ended by (?P<cause>.*?), while it \w+ .*$", re.MULTILINE)
_HOST_ERROR = re.compile(r"^host: (?P<message>.*)$", re.MULTILINE)


class EndedError(Exception):
    """The host process has exited.

    Attributes:
        reason: the reason, for messages.
        was_killed: whether another process killed it, or the system did because memory ran out.
    """

    def __init__(self, reason: str, *, was_killed: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.was_killed = was_killed


class HostProcess:
    """A host that reads and writes while this process continues.

    Args:
        command: the program and its arguments.
        folder: the folder to run in.
        environment: variables to add to those of this process.

    Attributes:
        received: unprocessed standard output.
    """

    def __init__(
        self, command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = start_piped(command, cwd=folder, env=environment)
        self._stdin, self._stdout, self._stderr = (
            pipe for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe is not None
        )
        self.received = bytearray()
        self._unwritten: deque[memoryview] = deque()
        self._complaints = bytearray()
        self._selector = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)
        self._is_writing = False

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    def send(self, pieces: Iterable[bytes]) -> None:
        """Write pieces to standard input as soon as the pipe accepts them."""
        self._unwritten.extend(map(memoryview, pieces))
        self._follow_stdin()

    def exchange(self, timeout_s: float | None) -> bool:
        """Wait until data can be read or written, and do so; return False if the time ran out.

        Raises:
            EndedError: the process has exited.
        """
        ready = self._selector.select(timeout_s)
        for key, _ in ready:
            if key.fileobj is self._stdin:
                self._write()
            elif key.fileobj is self._stderr:
                self._read_complaints()
            else:
                self._read()
        return bool(ready)

    def kill(self) -> None:
        """Kill the process, from any thread."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process, and wait for it."""
        self._selector.close()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._process.kill()
        self._stdout.close()
        self._stderr.close()
        self._process.wait()

    def forget(self) -> None:
        """In a forked process: close its copies of the pipes, and leave the host to the process that started it."""
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        self._process.returncode = 0  # only the parent process can wait for it

    def ended(self, cause: str | None = None) -> EndedError:
        """The exception for a process that has exited, after reading its remaining output.

        Args:
            cause: why this process killed it; None if it did not.
        """
        self._process.wait()
        with contextlib.suppress(BlockingIOError):
            while read := os.read(self._stderr.fileno(), _PIECE):
                self._complaints += read
        text = self._complaints.decode(errors="replace")
        status = self._process.returncode
        was_killed = cause is None and status in {-signal.SIGKILL, -signal.SIGTERM} and not _LAST_WORDS.search(text)
        return EndedError(cause or _reason(text, status), was_killed=was_killed)

    def _follow_stdin(self) -> None:
        """Watch standard input only while there is data to write, because it is almost always writable."""
        if bool(self._unwritten) != self._is_writing:
            self._is_writing = not self._is_writing
            if self._is_writing:
                self._selector.register(self._stdin, selectors.EVENT_WRITE)
            else:
                self._selector.unregister(self._stdin)

    def _write(self) -> None:
        try:
            while self._unwritten:
                done = os.writev(self._stdin.fileno(), [*self._unwritten][:_MOST_PIECES])
                while self._unwritten and done >= len(self._unwritten[0]):
                    done -= len(self._unwritten.popleft())
                if done:
                    self._unwritten[0] = self._unwritten[0][done:]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unwritten.clear()  # it has exited, which the next read reports
        self._follow_stdin()

    def _read(self) -> None:
        read = os.read(self._stdout.fileno(), _PIECE)
        if not read:
            raise self.ended()
        self.received += read

    def _read_complaints(self) -> None:
        read = os.read(self._stderr.fileno(), _PIECE)
        if not read:
            self._selector.unregister(self._stderr)
        self._complaints += read
        del self._complaints[:-_STDERR_TAIL]


def _reason(complaints: str, status: int) -> str:
    """Why a host exited, from its output and its exit status."""
    if words := [*_LAST_WORDS.finditer(complaints)]:
        return f"was ended by {words[-1]['cause']}"
    if status < 0:
        return f"was ended by {signal_name(-status)}"
    errors = [*_HOST_ERROR.finditer(complaints)]
    return f"exited with {status}" + (f": {errors[-1]['message']}" if errors else "")
