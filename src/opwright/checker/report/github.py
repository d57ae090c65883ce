"""The faults of a check as annotations that GitHub shows at the lines of a pull request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.checker.report.digest import faults
from opwright.checker.report.text import failure_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.checker.mutants.score import MutationReport
    from opwright.checker.verdict import Report
    from opwright.spec import Library


def fault_annotations(report: Report, library: Library) -> Iterator[str]:
    """A line for the log of a workflow for each fault, at the reference of its operator."""
    for fault in faults(report):
        op = library.ops.get(fault.subject)
        line = 1 if op is None else op.reference.__code__.co_firstlineno
        where = f" in {fault.sights[0].where}" if fault.sights[0].where else ""
        title = f"{fault.subject}{where}: {fault.failure.kind.diagnosis.title}"
        yield _command("error", library.root / "op.py", line, title, failure_text(fault.failure))


def survivor_annotations(report: MutationReport) -> Iterator[str]:
    """A line for each mutant that survived, at the location of the change."""
    for result in report.survivors:
        mutant = result.mutant
        title = f"no sample notices this change: {mutant.edit.change.value}"
        yield _command("warning", mutant.file, mutant.line, title, mutant.diff())


def _command(level: str, file: Path, line: int, title: str, message: str) -> str:
    # GitHub expects paths relative to the root of the repository.
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    path = os.path.relpath(file, root)
    return f"::{level} file={_property(path)},line={line},title={_property(title)}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
