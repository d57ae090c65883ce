"""`--watch`: runs a verb again whenever a file that it read changes."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from opwright.cli.arguments import PATH
from opwright.errors import OpwrightError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import FrameType

    from opwright.cli.changes import Changes

_ARGUMENTS = "opwright.arguments"
_READS = "opwright.reads"


class WatchableCommand(click.Command):
    """A verb with the option `--watch`.

    Its parameters include `path`, the folder of a library or its op.py, and `json`, a file or `-`.

    Args:
        done: the past tense of the verb, printed when it succeeds, such as `built`.
        unwatched: the verb's flags that do not support --watch.
        **attributes: arguments of `click.Command`.
    """

    def __init__(self, *, done: str, unwatched: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(**attributes)
        self._done = done
        self._unwatched = unwatched
        self.params += [
            click.Option(
                ["--watch"], is_flag=True, help="Run again whenever a file that was read changes, until Ctrl-C."
            ),
            # For the process that runs the verb once: the file in which it lists the files that it read.
            click.Option(["--list-reads"], type=PATH, hidden=True, expose_value=False, callback=_run_once),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, and keep it for later runs."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb, once or repeatedly."""
        if ctx.params.pop("watch"):
            for flag in self._unwatched:
                if ctx.params[flag]:
                    msg = f"--watch watches an operator library: it does not support --{flag}"
                    raise click.UsageError(msg)
            return _watch(ctx, self._done)
        return super().invoke(ctx)


def list_reads_at_end(files: Callable[[], Iterable[Path]]) -> None:
    """If a watch requested it, list `files`, those that the verb read, when the verb finishes or fails."""
    context = click.get_current_context()
    listing = context.meta.get(_READS)
    if listing is not None:
        context.call_on_close(lambda: _list_reads(listing, files))


def _list_reads(listing: Path, files: Callable[[], Iterable[Path]]) -> None:
    with contextlib.suppress(OpwrightError):  # the verb has reported it
        listing.write_text(json.dumps([str(file) for file in files()]))


def _run_once(context: click.Context, _option: click.Parameter, reads: Path | None) -> None:
    if reads is not None:
        context.meta[_READS] = reads
        signal.signal(signal.SIGTERM, _end)  # the watch stops this process, which cleans up and prints nothing


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _watch(context: click.Context, done: str) -> None:
    """Run the command line again and again, each time in a new process, until Ctrl-C or a signal.

    A change stops a run that has not finished, and starts the next one.
    """
    from opwright.cli.changes import Changes

    path: Path = context.params["path"]
    root = path if path.is_dir() else path.parent
    if not root.is_dir():
        msg = f"{root} is not a folder: --watch requires an existing folder, in which it waits for op.py"
        raise click.UsageError(msg)
    ended_by: list[int] = []

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        ended_by.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        with tempfile.TemporaryDirectory(prefix="opwright-watch-") as work:
            command = [str(context.info_name), *context.meta[_ARGUMENTS]]
            runs = _Runs(command, Changes(root.resolve()), Path(work), context.params["json"])
            while True:
                runs.run(done)
    except KeyboardInterrupt:
        context.exit(128 + ended_by[0] if ended_by else 0)


class _Runs:
    """The runs of a watched command line.

    Args:
        arguments: the command line, which contains `--watch`.
        changes: detects changed files.
        work: a folder for temporary files.
        log: the file to which each run appends a line of JSON; `-` is standard output.
    """

    def __init__(self, arguments: Sequence[str], changes: Changes, work: Path, log: str | None) -> None:
        self._changes = changes
        self._reads = work / "reads.json"
        self._result = work / "result.json"
        self._log = log
        self._because: dict[Path, None] = {}
        options = ["--list-reads", str(self._reads), *(["--json", str(self._result)] if log is not None else [])]
        once = [word for word in arguments if word != "--watch"]
        end = once.index("--") if "--" in once else len(once)
        # If an option is repeated, the last one is used.
        self._command = [sys.executable, "-m", "opwright", *once[:end], *options, *once[end:]]

    def run(self, done: str) -> None:
        """Run once, report the run unless a change has stopped it, and wait for the next change."""
        from opwright.report.format import duration

        for file in (self._reads, self._result):
            file.unlink(missing_ok=True)
        started, started_ns = time.perf_counter(), time.time_ns()
        code, changed = self._ended()
        if code is not None:
            seconds = time.perf_counter() - started
            if self._reads.exists():
                changed = self._changes.include(
                    [Path(name) for name in json.loads(self._reads.read_text())], started_ns
                )
            why = f" ({', '.join(path.name for path in self._because)} changed)" if self._because else ""
            outcome = f"{done if code == 0 else 'failed'} in {duration(seconds)}{why}"
            self._append(code, seconds)
            click.echo(f"{_now():%H:%M:%S} {outcome}; watching {self._changes.count} files", err=True)
            self._because.clear()
        while not changed:
            changed = self._changes.wait()
        self._because.update(dict.fromkeys(changed))

    def _ended(self) -> tuple[int | None, list[Path]]:
        """The exit code of one run; if files change before it exits, None and these files."""
        from opwright.toolchain.run import Attached

        program = Attached(self._command, silent=self._log == "-")
        try:
            while (code := program.exit_code()) is None:
                if changed := self._changes.wait():
                    return None, changed
            return code, []
        finally:
            if program.exit_code() is None:
                program.stop()

    def _append(self, code: int, seconds: float) -> None:
        if self._log is None:
            return
        run = {
            "time": _now().isoformat(timespec="seconds"),
            "changed": [str(path) for path in self._because],
            "exit_code": code,
            "seconds": round(seconds, 3),
            "result": json.loads(self._result.read_text()) if self._result.exists() else None,
        }
        if self._log == "-":
            click.echo(json.dumps(run))
            return
        try:
            with Path(self._log).open("a") as file:
                file.write(f"{json.dumps(run)}\n")
        except OSError as error:
            msg = f"--json {self._log} cannot be written: {error.strerror}. Name a file in a folder that exists"
            raise OpwrightError(msg) from error


def _now() -> datetime:
    return datetime.now().astimezone()
