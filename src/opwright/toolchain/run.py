"""Runs programs: the only place in opwright that starts another one."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from opwright.errors import BuildError, SignatureError, ToolchainError
from opwright.toolchain.diagnostics import first_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Completed:
    """A program that has ended.

    Attributes:
        command: the command line, ready to paste into a shell.
        output: what it printed on both of its streams, in order.
        exit_code: its exit status; negative for the signal that ended it.
        timed_out: whether it was killed at its time limit.
    """

    command: str
    output: str
    exit_code: int
    timed_out: bool = False


class TimeLimit:
    """The time until a program is killed, which can begin again.

    Args:
        seconds: the limit in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.restart()

    @property
    def left_s(self) -> float:
        """The time that is left, in seconds."""
        return self._end - time.monotonic()

    def restart(self) -> None:
        """Begin again: the program has made progress."""
        self._end = time.monotonic() + self._seconds


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    check: bool = True,
    timeout_s: float | TimeLimit | None = None,
) -> Completed:
    """Run a program to its end and keep what it prints.

    Args:
        command: the program and its arguments; no shell is involved.
        cwd: the folder to run in.
        env: variables to set in addition to this process's own.
        on_line: called with each line as it is printed, for progress.
        check: raise if the exit status is not zero.
        timeout_s: kill the program, and what it started, after this many seconds or at this limit.

    Raises:
        ToolchainError: the program does not exist or cannot be run.
        BuildError: it failed, and `check` is set; the message contains the first error, its place and the command.
    """
    process: subprocess.Popen[str] = _start(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # A separate group can be killed as a whole. Without a limit it stays in ours, and Ctrl-C reaches it.
        start_new_session=timeout_s is not None,
    )
    printed: list[str] = []
    with process, _killed_after(process, timeout_s) as timed_out:
        if process.stdout is None:  # only for the type checker: stdout is a pipe
            raise AssertionError
        for text in process.stdout:
            printed.append(text)
            if on_line is not None:
                on_line(text.rstrip("\n"))
        process.wait()  # here, within the time limit: it may have closed its streams and still run
    completed = Completed(shlex.join(map(str, command)), "".join(printed), process.returncode, timed_out.is_set())
    if check and completed.exit_code != 0:
        raise failure(completed)
    return completed


@contextlib.contextmanager
def _killed_after(process: subprocess.Popen[str], timeout_s: float | TimeLimit | None) -> Iterator[threading.Event]:
    """Kill the group of `process` at its time limit, which sets the event, or on an exception."""
    timed_out = threading.Event()
    if timeout_s is None:
        yield timed_out
        return

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
            timed_out.set()

    limit = timeout_s if isinstance(timeout_s, TimeLimit) else TimeLimit(timeout_s)
    ended = threading.Event()

    def wait() -> None:
        while (left_s := limit.left_s) > 0:
            if ended.wait(left_s):
                return
        kill()

    limit.restart()
    waiter = threading.Thread(target=wait)
    waiter.start()
    try:
        yield timed_out
    except BaseException:
        kill()
        raise
    finally:
        ended.set()
        waiter.join()


class Attached:
    """A program that runs while this one goes on, with the same streams, but out of reach of the terminal's Ctrl-C.

    Args:
        command: the program and its arguments; no shell is involved.
        silent: discard its standard output.

    Raises:
        ToolchainError: the program does not exist or cannot be run.
    """

    def __init__(self, command: Sequence[str | Path], *, silent: bool = False) -> None:
        self._process: subprocess.Popen[bytes] = _start(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if silent else None, start_new_session=True
        )

    def exit_code(self) -> int | None:
        """Its exit status, negative for the signal that ended it; None while it runs."""
        return self._process.poll()

    def stop(self, patience_s: float = 20.0) -> None:
        """End it and what it started: by SIGTERM, so that it cleans up, and by force after `patience_s` seconds."""
        for number, limit_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(limit_s)
                return


def start_piped(
    command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program whose three streams are pipes to this process.

    It is out of reach of the terminal's Ctrl-C: whoever starts it ends it.

    Args:
        command: the program and its arguments; no shell is involved.
        cwd: the folder to run in.
        env: environment variables in addition to those of this process.

    Raises:
        ToolchainError: the program does not exist or cannot be run.
    """
    environment = {**os.environ, **(env or {})}
    pipe = subprocess.PIPE
    process: subprocess.Popen[bytes] = _start(
        command, cwd=cwd, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
    )
    return process


def run_forked(act: Callable[[], None], *, timeout_s: float) -> Completed:
    """Run a function in a forked copy of this process, for what may end a process.

    The copy has no other threads, and what the function changes in it has no effect here.

    Args:
        act: the function. The text of an exception that it raises is printed after a NUL; the exit status is then 1.
        timeout_s: kill the copy after this many seconds.
    """
    with tempfile.TemporaryFile() as printed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of other threads, which `act` does not need
            process = os.fork()
        if process == 0:
            _act_and_end(act, printed.fileno())
        watched = os.pidfd_open(process)
        try:
            ended, _, _ = select.select([watched], [], [], timeout_s)
        finally:
            os.close(watched)
        if not ended:
            os.kill(process, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        printed.seek(0)
        return Completed("", printed.read().decode(errors="replace"), status, timed_out=not ended)


def _act_and_end(act: Callable[[], None], output: int) -> NoReturn:
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        faulthandler.disable()  # it may print elsewhere
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        act()
        status = 0
    finally:
        if (error := sys.exc_info()[1]) is not None:
            os.write(output, b"\0" + str(error).encode(errors="replace"))
        os._exit(status)


def become(command: Sequence[str | Path]) -> NoReturn:
    """Replace this process by a program, which inherits its streams and receives its signals.

    Raises:
        ToolchainError: the program does not exist or cannot be run.
    """
    line = [str(word) for word in command]
    try:
        os.execv(line[0], line)  # noqa: S606  no shell is wanted
    except OSError as error:
        raise _not_runnable(line, error) from error


def failure(completed: Completed, what: str = "the command failed") -> BuildError:
    """The error for a program that failed: the first real diagnostic and the command, without the other output."""
    diagnostic = first_error(completed.output)
    ended = (
        "was killed at its time limit"
        if completed.timed_out
        else f"was ended by signal {-completed.exit_code}"
        if completed.exit_code < 0
        else f"exited with {completed.exit_code}"
    )
    shown = diagnostic.text or completed.output.strip()[-1000:] or f"it printed nothing and {ended}"
    msg = f"{what}:\n{shown}\nThe command {ended}:\n  {completed.command}"
    error = SignatureError if diagnostic.is_signature else BuildError
    return error(msg, command=completed.command, output=completed.output)


def _start(command: Sequence[str | Path], **settings: Any) -> subprocess.Popen[Any]:
    """Start a program with the settings of Popen; raise ToolchainError if it does not exist or cannot be run."""
    line = [str(word) for word in command]
    try:
        return subprocess.Popen(line, **settings)  # noqa: S603  opwright composed the command
    except (FileNotFoundError, PermissionError) as error:
        raise _not_runnable(line, error) from error


def _not_runnable(line: Sequence[str], error: OSError) -> ToolchainError:
    msg = f"{line[0]} cannot be run: {error.strerror}. `opwright doctor` shows what is missing and how to get it"
    return ToolchainError(msg)
