"""Runs other programs; no other module of opwright starts one."""

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
from opwright.toolchain.signals import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Completed:
    """A program that has exited.

    Attributes:
        command: the command line, ready to paste into a shell.
        output: its stdout and stderr, in order.
        exit_code: its exit status; the negative number of the signal that killed it, if any.
        timed_out: whether it was killed at its time limit.
    """

    command: str
    output: str
    exit_code: int
    timed_out: bool = False


class TimeLimit:
    """The time after which a program is killed; it can be restarted.

    Args:
        seconds: the limit in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.restart()

    @property
    def left_s(self) -> float:
        """The remaining time, in seconds."""
        return self._end - time.monotonic()

    def restart(self) -> None:
        """Restart the limit, because the program has made progress."""
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
    """Run a program until it exits, and capture its output.

    Args:
        command: the program and its arguments; no shell is involved.
        cwd: the folder to run in.
        env: environment variables in addition to those of this process.
        on_line: called with each line as it is printed, for progress.
        check: raise if the exit status is not zero.
        timeout_s: kill the program and its children after this many seconds or at this limit.

    Raises:
        ToolchainError: the program does not exist or cannot be run.
        BuildError: it failed, and `check` is set; the message contains the first error, its location and the command.
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
        # A separate process group can be killed as a whole. Without a limit, Ctrl-C must reach the program.
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
        process.wait()  # within the time limit: a program may close its streams and continue to run
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
    """A program that runs in the background with the same streams, but does not receive the terminal's Ctrl-C.

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
        """Its exit status, or the negative number of the signal that killed it; None while it runs."""
        return self._process.poll()

    def stop(self, patience_s: float = 20.0) -> None:
        """Stop it and its children with SIGTERM, so that it cleans up, and kill them after `patience_s` seconds."""
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

    It does not receive the terminal's Ctrl-C: the caller must stop it.

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
    """Run a function that may crash in a fork of this process.

    The fork has no other threads, and does not affect the state of this process.

    Args:
        act: the function. If it raises, the exception's text is printed after a NUL, and the exit status is 1.
        timeout_s: kill the fork after this many seconds.
    """
    with tempfile.TemporaryFile() as printed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about other threads, which `act` does not need
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
    """Replace this process with a program, which inherits its streams and receives its signals.

    Raises:
        ToolchainError: the program does not exist or cannot be run.
    """
    line = [str(word) for word in command]
    try:
        os.execv(line[0], line)  # noqa: S606  no shell is needed
    except OSError as error:
        raise _not_runnable(line, error) from error


def failure(
    completed: Completed,
    what: str = "the command failed",
    *,
    is_authors: bool = True,
    advise: Callable[[str], str] | None = None,
) -> BuildError:
    """The error for a program that failed: the first real diagnostic and the command, without the other output.

    Args:
        completed: the program.
        what: what failed.
        is_authors: whether it processed the user's sources; otherwise opwright's own.
        advise: returns what to append to the text of an error, which it is given.
    """
    diagnostic = first_error(completed.output, is_authors=is_authors)
    code = completed.exit_code
    ended = f"was killed by {signal_name(-code)}" if code < 0 else f"exited with {code}"
    if completed.timed_out:
        ended = "was killed at its time limit"
    shown = diagnostic.text or completed.output.strip()[-1000:] or f"it printed nothing and {ended}"
    shown += advise(shown) if advise else ""
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
