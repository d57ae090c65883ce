"""Starts a process of a check, and serves the channel to it."""

from __future__ import annotations

import contextlib
import re
import secrets
import signal
import socket
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.checker.kinds import Kind
from opwright.checker.processes.channel import Channel, listen
from opwright.toolchain.run import Completed, TimeLimit, run
from opwright.toolchain.socket_folder import socket_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from opwright.checker.job import Job

# The messages of the C library about a corrupted heap.
_CORRUPT = re.compile(r"malloc|free\(\)|double free|corrupt|invalid (pointer|size|next size)|realloc\(\)")
# The message that faulthandler, the watchdog of a process, prints when it ends the process.
_TOO_LONG = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)
# A process ends itself when a step takes too long. This limit, counted from its last message, is for processes that it
# leaves behind.
_LONGEST_S = 3600.0


@dataclass
class ServedProcess:
    """A process of a check.

    Attributes:
        printed: the lines that it has printed.
        channel: the channel to it, while it is served.
        limit: the time until it is killed, which restarts with each message.
        completed: how it exited, once it has.
    """

    printed: list[str] = field(default_factory=list)
    channel: Channel = field(init=False)
    limit: TimeLimit = field(default_factory=lambda: TimeLimit(_LONGEST_S))
    completed: Completed = field(default_factory=lambda: Completed("", "", 0))

    def receive(self) -> dict[str, Any] | None:
        """The next message; None if the process has closed the channel.

        Raises:
            ForgedMessageError: a message does not come from the process.
        """
        message = self.channel.receive()
        self.limit.restart()
        return message


@contextlib.contextmanager
def served_process(
    job: Job,
    file: Path,
    module: str,
    environment: Mapping[str, str],
    python: Sequence[str],
    limit_s: float = _LONGEST_S,
) -> Iterator[ServedProcess]:
    """Start `module` with `job`, and yield the process once it has opened the channel or exited.

    Args:
        job: the job for it.
        file: the path to which the job is written.
        module: the module to run.
        environment: environment variables to set in addition to this process's own.
        python: the prefix of a command line that runs a module.
        limit_s: the process is killed if it neither sends a message nor exits within this many seconds.
    """
    with socket_folder("opwright-") as folder:
        path = folder / "channel"
        key = secrets.token_hex()
        replace(job, socket=str(path), key=key).write(file)
        process = ServedProcess(limit=TimeLimit(limit_s))

        def start() -> None:
            try:
                command = [*python, module, str(file)]
                process.completed = run(
                    command,
                    env=environment,
                    on_line=process.printed.append,
                    check=False,
                    timeout_s=process.limit,
                )
            finally:
                with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as ended:
                    ended.connect(str(path))  # if the process never connected, this ends the wait

        with listen(path) as listener:
            runner = threading.Thread(target=start)
            runner.start()
            connection, _ = listener.accept()
        process.channel = Channel(connection, key)
        try:
            yield process
        finally:
            process.channel.close()
            runner.join()


def exceeded_limit_s(job: Job, completed: Completed, output: str) -> float | None:
    """The time limit that ended a process, in seconds; None if none did.

    Args:
        job: its job, with the limit of a step.
        completed: how it exited.
        output: its output during the step.
    """
    if completed.timed_out:
        return _LONGEST_S
    return job.step_limit_s if _TOO_LONG.search(output) else None


def kind_of_ending(exit_code: int, output: str, inaccessible: Kind = Kind.CRASH) -> Kind:
    """The kind of fault shown by a process that ends during a call.

    Args:
        exit_code: its exit code; negative for a signal.
        output: its output.
        inaccessible: the kind if it accessed inaccessible memory. `Kind.RACE` also explains a corrupted heap and any
            other signal of the process itself, because the same calls in sequence did not end it. `Kind.REFERENCE`
            also explains an exit, because no operator had been called.
    """
    if inaccessible is Kind.REFERENCE and exit_code != -signal.SIGKILL:
        return Kind.REFERENCE
    if exit_code >= 0:
        return Kind.EXIT
    if inaccessible is Kind.RACE and exit_code != -signal.SIGKILL:
        return Kind.RACE
    if -exit_code in (signal.SIGSEGV, signal.SIGBUS):
        return inaccessible
    if exit_code == -signal.SIGABRT and _CORRUPT.search(output):
        return Kind.HEAP
    return Kind.CRASH
