"""A Python process that imports modules once and forks itself for each program that needs them."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

# What starts a module's `main` without a server.
PLAIN = (sys.executable, "-m")

_CLIENT = Path(__file__).with_name("fork_client.py")
_STARTS_UP_S = 0.02
_shared: list[tuple[str, ...]] = []


@contextlib.contextmanager
def fork_server(modules: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Within it, programs start in a process that has imported `modules` already, which for PyTorch saves seconds.

    Each program runs in a process of its own, forked before any other has run: what one does reaches no other. It has
    the environment, the folder and the streams of whoever starts it, and its exit status or its signal comes back.
    Where no server can run, it starts as it would without one.

    Where one is open in this process already, that one serves, with what it has imported.

    Args:
        modules: what to import; one that cannot be imported is left to the program.

    Yields:
        The words of a command line that stand in for `python -m`; the name of a module with a `main` follows, and its
        arguments.
    """
    if _shared:
        yield _shared[-1]
        return
    with tempfile.TemporaryDirectory(prefix="opwright-fork-") as folder:
        pid: list[int] = []
        words = [*PLAIN, __name__, folder, *modules]

        def serve() -> None:
            try:
                run(words, on_line=lambda line: pid.append(int(line)) if line.isdecimal() else None, check=False)
            finally:
                (Path(folder) / "ended").touch()  # no program waits for it any longer

        server = threading.Thread(target=serve)
        server.start()
        _shared.append((sys.executable, "-IS", str(_CLIENT), folder))
        try:
            yield _shared[-1]
        finally:
            _shared.pop()
            while server.is_alive() and not pid:
                time.sleep(_STARTS_UP_S)
            if pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid[0], signal.SIGTERM)
            server.join()


class _Server:
    """The process that forks.

    Args:
        folder: where its socket is.
    """

    def __init__(self, folder: Path) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "socket"))
        self.listener.listen(64)
        self.programs: dict[int, socket.socket] = {}  # by process: who waits for its end
        self.woken, waker = socket.socketpair()
        for end in (self.woken, waker):
            end.setblocking(False)
        self.waker = waker

    def serve(self) -> tuple[str, list[str]] | None:
        """Fork for whoever asks, until whoever started this one is gone.

        Returns:
            In a forked process, the module to run and its arguments; in the server None, at its end.
        """
        signal.set_wakeup_fd(self.waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        poll.register(1, 0)  # says when nobody reads any more
        while True:
            for file, _ in poll.poll():
                if file == 1:
                    return None
                if file == self.listener.fileno():
                    asked, _ = self.listener.accept()
                    text, streams = _request(asked)
                    if not text:  # the client was killed before it had asked
                        asked.close()
                        continue
                    program = self._start(asked, json.loads(text), streams)
                    if program is not None:
                        return program
                    poll.register(asked, select.POLLIN)
                elif file == self.woken.fileno():
                    with contextlib.suppress(BlockingIOError):
                        self.woken.recv(4096)
                else:
                    poll.unregister(file)
                    self._abandon(file)
            for asked in self._ended():
                with contextlib.suppress(KeyError):  # it was abandoned
                    poll.unregister(asked)
                asked.close()

    def _start(self, asked: socket.socket, job: dict[str, Any], streams: Sequence[int]) -> tuple[str, list[str]] | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # BLAS has threads, and stops them to fork
            process = os.fork()
        if process:
            self.programs[process] = asked
            for stream in streams:
                os.close(stream)
            return None
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)
            os.close(stream)
        for end in (self.listener, self.woken, self.waker, asked, *self.programs.values()):
            end.close()
        os.environ.clear()
        os.environ.update(job["environment"])
        os.chdir(job["folder"])
        return job["module"], job["arguments"]

    def _ended(self) -> Iterator[socket.socket]:
        """Tell the ends of programs to whoever waits for them."""
        while self.programs:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            if (asked := self.programs.pop(process, None)) is not None:
                with contextlib.suppress(OSError):
                    asked.sendall(str(os.waitstatus_to_exitcode(status)).encode())
                yield asked

    def _abandon(self, file: int) -> None:
        """End the program whose client is gone."""
        for process, asked in self.programs.items():
            if asked.fileno() == file:
                _kill(process)

    def close(self) -> None:
        """End what runs."""
        for process in self.programs:
            _kill(process)


def _request(asked: socket.socket) -> tuple[bytes, list[int]]:
    """What a client asks for, with its three streams; nothing where it ended before it had sent all of it."""
    header, streams, _, _ = socket.recv_fds(asked, 8, 3)
    text = b""
    while len(header) == 8 and len(text) < int.from_bytes(header, "little"):
        if not (part := asked.recv(2**16)):
            break
        text += part
    else:
        if text:
            return text, list(streams)
    for stream in streams:
        os.close(stream)
    return b"", []


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)  # with all that it started
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)  # where it has no group of its own yet


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  what Python gives to a handler of signals
    raise SystemExit


def main() -> None:
    """Import modules, then fork for each program; a forked process runs the `main` of its module."""
    signal.signal(signal.SIGTERM, _end)
    print(os.getpid(), flush=True)  # noqa: T201  whoever started this reads it
    folder, *modules = sys.argv[1:]
    server = _Server(Path(folder))
    program = None
    try:
        for module in modules:
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        program = server.serve()
    finally:
        if program is None:
            server.close()
    if program is not None:
        module, sys.argv[1:] = program
        importlib.import_module(module).main()


if __name__ == "__main__":
    main()
