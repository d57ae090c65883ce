"""A Python process that imports modules once and forks itself for each program that needs them."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
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
from typing import TYPE_CHECKING, Any, NoReturn

from opwright.toolchain.run import run
from opwright.toolchain.socket_folder import socket_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

# The start of a command line that runs a module's `main` without a server. Output is not buffered, so that a crash does
# not lose it.
PLAIN = (sys.executable, "-u", "-m")

_CLIENT = Path(__file__).with_name("fork_client.py")
_STARTS_UP_S = 0.02
_shared: list[tuple[str, ...]] = []


@contextlib.contextmanager
def fork_server(modules: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Start programs in forks of a process that has imported `modules`, which saves seconds for PyTorch.

    Each program runs in a separate fork of a process in which no other program has run, so that programs do not affect
    each other. It has the environment, working directory and streams of its caller, which receives its exit status or
    signal. If the server cannot run, programs start without it.

    If this process already has an open server, it is reused, with the modules that it imported.

    Args:
        modules: the modules to import; if one cannot be imported, the program reports it.

    Yields:
        The start of a command line, in place of `python -m`; append the name of a module with a `main`, and its
        arguments.
    """
    if _shared:
        yield _shared[-1]
        return
    with socket_folder("opwright-fork-") as folder:
        pid: list[int] = []
        words = [*PLAIN, __name__, str(folder), *modules]

        def serve() -> None:
            try:
                run(words, on_line=lambda line: pid.append(int(line)) if line.isdecimal() else None, check=False)
            finally:
                (folder / "ended").touch()  # clients stop waiting for it

        server = threading.Thread(target=serve)
        server.start()
        _shared.append((sys.executable, "-IS", str(_CLIENT), str(folder)))
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
        folder: the folder of its socket.
    """

    def __init__(self, folder: Path) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "socket"))
        self.listener.listen(64)
        self.programs: dict[int, socket.socket] = {}  # by process ID, the client that waits for it
        self.woken, waker = socket.socketpair()
        for end in (self.woken, waker):
            end.setblocking(False)
        self.waker = waker

    def serve(self) -> tuple[str, list[str]] | None:
        """Fork for each client, until the process that started the server has exited.

        Returns:
            In a forked process, the module to run and its arguments; in the server, None when it stops.
        """
        signal.set_wakeup_fd(self.waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        poll.register(1, 0)  # reports when its reader has closed it
        while True:
            for file, _ in poll.poll():
                if file == 1:
                    return None
                if file == self.listener.fileno():
                    client, _ = self.listener.accept()
                    text, streams = _request(client)
                    if not text:  # the client was killed before it sent its request
                        client.close()
                        continue
                    program = self._start(client, json.loads(text), streams)
                    if program is not None:
                        return program
                    poll.register(client, select.POLLIN)
                elif file == self.woken.fileno():
                    with contextlib.suppress(BlockingIOError):
                        self.woken.recv(4096)
                else:
                    poll.unregister(file)
                    self._abandon(file)
            for client in self._ended():
                with contextlib.suppress(KeyError):  # it was abandoned
                    poll.unregister(client)
                client.close()

    def _start(
        self, client: socket.socket, job: dict[str, Any], streams: Sequence[int]
    ) -> tuple[str, list[str]] | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # BLAS has threads, but stops them before forking
            process = os.fork()
        if process:
            self.programs[process] = client
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
        for end in (self.listener, self.woken, self.waker, client, *self.programs.values()):
            end.close()
        os.environ.clear()
        os.environ.update(job["environment"])
        # An interpreter reads it only when it starts.
        added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[1:1] = [one for one in added if one and one not in sys.path]
        tempfile.tempdir = None  # depends on the environment
        os.chdir(job["folder"])
        return job["module"], job["arguments"]

    def _ended(self) -> Iterator[socket.socket]:
        """Send exit statuses to the clients that wait for them, and yield these clients."""
        while self.programs:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            if (client := self.programs.pop(process, None)) is not None:
                with contextlib.suppress(OSError):
                    client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
                yield client

    def _abandon(self, file: int) -> None:
        """Kill the program whose client is gone."""
        for process, client in self.programs.items():
            if client.fileno() == file:
                _kill(process)

    def close(self) -> None:
        """Kill all programs."""
        for process in self.programs:
            _kill(process)


def _request(client: socket.socket) -> tuple[bytes, list[int]]:
    """A client's request with its three streams; empty if the client ended before it sent all of it."""
    header, streams, _, _ = socket.recv_fds(client, 8, 3)
    text = b""
    while len(header) == 8 and len(text) < int.from_bytes(header, "little"):
        if not (part := client.recv(2**16)):
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
        os.killpg(process, signal.SIGKILL)  # with its children
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)  # if it has no process group yet


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  the arguments of a signal handler
    raise SystemExit


def _run(module: str) -> NoReturn:
    """Run the `main` of a module, and exit as an interpreter does, except that imported modules are not freed.

    Freeing them in a forked process copies most of its memory, which takes a second with PyTorch.
    """
    status: object = None
    try:
        importlib.import_module(module).main()
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001  as the interpreter does for uncaught exceptions
        sys.excepthook(*sys.exc_info())
        status = 1
    if not isinstance(status, int | None):
        sys.stderr.write(f"{status}\n")  # sys.exit("message")
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  joins threads, including those of executors
    atexit._run_exitfuncs()  # noqa: SLF001  has no public name
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed by its reader or by the program
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # the output of native code
    os._exit(status or 0)


def main() -> None:
    """Import modules, then fork for each program; a forked process runs the `main` of its module."""
    signal.signal(signal.SIGTERM, _end)
    sys.stdout.write(f"{os.getpid()}\n")  # the parent process reads it
    sys.stdout.flush()
    folder, *modules = sys.argv[1:]
    server, process = _Server(Path(folder)), os.getpid()
    try:
        for module in modules:
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        gc.freeze()  # a collection in a forked process would copy the memory of all imported modules
        program = server.serve()
    finally:
        if os.getpid() == process:  # a forked process that fails to start ends only itself
            server.close()
    if program is not None:
        module, sys.argv[1:] = program
        _run(module)


if __name__ == "__main__":
    main()
