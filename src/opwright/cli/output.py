"""The output of a verb: text for people, JSON for programs."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opwright.errors import OpwrightError
from opwright.storage.draft import drafting, put

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console


def stdout() -> Console:
    """The console for tables and reports."""
    from opwright.report.terminal import console

    return console(stderr=False)


def stderr() -> Console:
    """The console for errors and progress."""
    from opwright.report.terminal import console

    return console(stderr=True)


def write_json(target: str, result: dict[str, Any]) -> None:
    """Write `result` to the file `target`, or to standard output for `-`.

    Raises:
        OpwrightError: the file cannot be written.
    """
    write_text("--json", target, json.dumps(result, indent=2) + "\n")


def write_text(option: str, target: str, text: str) -> None:
    """Write `text`, the output of `option`, to the file `target`, or to standard output for `-`.

    Raises:
        OpwrightError: the file cannot be written.
    """
    if target == "-":
        if sys.stdout is None:  # as in a shell's `>&-`
            raise _unwritable(option, target, os.strerror(errno.EBADF))
        click.echo(text, nl=False)
        return
    try:
        if _is_stream(Path(target)):
            Path(target).write_text(text)
            return
        path = Path(target).resolve()  # keeps a symbolic link, and writes its target
        with drafting(path, "write") as draft:
            draft.write_text(text)
            if path.exists():
                shutil.copymode(path, draft)
            put(draft, path)
    except OSError as error:
        raise _unwritable(option, target, error.strerror) from error


def print_annotations(lines: Iterable[str]) -> None:
    """Print annotations on standard error, to keep JSON on standard output intact: a workflow reads both streams."""
    for line in lines:
        click.echo(line, err=True)


def check_target(option: str, target: str) -> None:
    """Check before the work starts that `target` names a file that can be written later.

    Raises:
        OpwrightError: its folder does not exist, or it is a folder.
    """
    if target != "-" and Path(target).is_dir():
        raise _unwritable(option, target, os.strerror(errno.EISDIR))
    if not Path(target).parent.is_dir():
        raise _unwritable(option, target, os.strerror(errno.ENOENT))


def _is_stream(path: Path) -> bool:
    """Whether `path` is a pipe, a device, or another name of an open file, such as /dev/stdout."""
    return path.parts[:2] in {("/", "dev"), ("/", "proc")} or (path.exists() and not path.is_file())


def _unwritable(option: str, target: str, reason: str | None) -> OpwrightError:
    return OpwrightError(
        f"{option} {target} cannot be written: {reason}. Name a file in a folder that exists"
        + (", or - for standard output" if option == "--json" else "")
    )
