"""Prepares a report for display: the same text on the terminal and on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opwright.checker.kinds import Kind
from opwright.report.format import DASH, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.verdict import Cell, Failure, Report, Status

Outcome = Literal["passed", "failed", "nothing ran"]

MARKS: dict[Status, str] = {
    "passed": "ok",
    "failed": "FAIL",
    "lacking": "lack",
    "not applicable": DASH,
    "not run": "skip",
}
# Statuses of cells that did not run; their marks need a legend.
UNRUN: tuple[Status, ...] = ("lacking", "not applicable", "not run")

# Kinds whose message is the fault: two of them are the same fault only if their messages are the same.
_MESSAGE_IS_THE_FAULT = {Kind.RUNTIME, Kind.OPCHECK, Kind.SANITIZER}


@dataclass(frozen=True)
class Row:
    """One operator on one device: a row of the matrix.

    Attributes:
        op: the operator, without the library's namespace.
        device: `cpu` or `cuda`.
        cells: its cells, by runtime.
    """

    op: str
    device: str
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Sight:
    """One place where a fault was seen.

    Attributes:
        cell: the cell; None for the library as a whole.
        where: the runtime, with the device if there are several; empty for the library as a whole.
        failure: the fault as it appeared there.
    """

    cell: Cell | None
    where: str
    failure: Failure


@dataclass(frozen=True)
class Fault:
    """One fault of one operator, with every place where it appeared.

    Attributes:
        subject: the operator, or the library as a whole.
        sights: where it was seen; reports show the first one in full.
    """

    subject: str
    sights: tuple[Sight, ...]

    @property
    def failure(self) -> Failure:
        """The fault as it appeared first."""
        return self.sights[0].failure

    @property
    def also_in(self) -> tuple[str, ...]:
        """The other places."""
        return tuple(sight.where for sight in self.sights[1:])


@dataclass(frozen=True)
class Remark:
    """A sentence about some cells.

    Attributes:
        where: a description of the cells: `vmap, aoti` or `vmap of scale`.
        text: the sentence.
    """

    where: str
    text: str


def runtimes(report: Report) -> list[str]:
    """The runtimes that occur, in their order."""
    return list(dict.fromkeys(cell.runtime for cell in report.cells))


def rows(report: Report) -> list[Row]:
    """The matrix, row by row."""
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in report.cells:
        found.setdefault((cell.op, cell.device), {})[cell.runtime] = cell
    return [Row(short(report, op), device, cells) for (op, device), cells in found.items()]


def short(report: Report, op: str) -> str:
    """An operator's name without the namespace of the library that was checked."""
    return op.removeprefix(f"{report.namespace}::")


def faults(report: Report) -> list[Fault]:
    """Every fault once, with all places where it was seen: first the library's, then those of the cells in order."""
    found: dict[tuple[str, Kind, str], list[Sight]] = {}
    library = f"library {report.namespace}"
    for failure in report.failures:
        found.setdefault((library, failure.kind, failure.detail), []).append(Sight(None, "", failure))
    for cell in report.cells:
        for failure in cell.failures:
            message = failure.detail or failure.got if failure.kind in _MESSAGE_IS_THE_FAULT else ""
            sight = Sight(cell, cell.runtime + _on(report, cell.device), failure)
            found.setdefault((short(report, cell.op), failure.kind, message), []).append(sight)
    return [Fault(subject, tuple(sights)) for (subject, _, _), sights in found.items()]


def remarks(report: Report) -> dict[str, list[Remark]]:
    """Reasons and notes in addition to the faults, by heading; empty headings are omitted."""
    by_heading: dict[str, list[Remark]] = {
        "failed": _reasons(report, "failed"),
        **{status: _reasons(report, status) for status in UNRUN},
        "notes": [*_reasons(report, "passed"), *_rejections(report)],
    }
    return {heading: found for heading, found in by_heading.items() if found}


def outcome(report: Report) -> Outcome:
    """The verdict in a word; a check in which no cell ran has not passed."""
    if report.passed:
        return "passed"
    return "failed" if report.ran or report.failures else "nothing ran"


def tally(report: Report) -> str:
    """The number of cells of each status; the share of passed cells counts only those that ran."""
    counts = dict.fromkeys(MARKS, 0)
    for cell in report.cells:
        counts[cell.status] += 1
    ran = counts["passed"] + counts["failed"]
    kinds = ", ".join(dict.fromkeys(failure.kind.value for cell in report.cells for failure in cell.failures))
    parts = [f"{failure.kind.diagnosis.title} ({failure.kind.value})" for failure in report.failures]
    parts.append(f"{counts['passed']} of {ran} cell{'s' * (ran != 1)} passed" if ran else "no cell ran")
    if counts["failed"]:
        parts.append(f"{counts['failed']} failed" + f" ({kinds})" * bool(kinds))
    parts += [f"{counts[status]} {status}" for status in UNRUN if counts[status]]
    return ", ".join(parts)


def verdict(report: Report) -> str:
    """The verdict in one line, with the duration of the check and the options that reproduce it."""
    facts = [f"{report.namespace}: {tally(report)}", duration(report.seconds), f"seed {report.seed}"]
    if report.sanitize:
        facts.append(f"sanitizers {', '.join(report.sanitize)}")
    return " · ".join(facts)


def _reasons(report: Report, status: Status) -> list[Remark]:
    """The reasons of the cells of a status, each once; a placeholder replaces a missing reason."""
    by_reason: dict[str, list[Cell]] = {}
    for cell in report.cells:
        if cell.status == status:
            unexplained = status != "passed" and not cell.failures
            by_reason.setdefault(cell.reason or "no reason was reported" * unexplained, []).append(cell)
    return [Remark(_places(report, cells), reason) for reason, cells in by_reason.items() if reason]


def _rejections(report: Report) -> list[Remark]:
    """Which operators rejected varied inputs, which is allowed, and how many."""
    counts_of = {
        _subject(report, row.op, row.device): [
            f"{cell.rejected} of {cell.cases} in {cell.runtime}" for cell in row.cells.values() if cell.rejected
        ]
        for row in rows(report)
    }
    return [
        Remark(subject, f"rejected varied inputs with an error (allowed): {', '.join(counts)}")
        for subject, counts in counts_of.items()
        if counts
    ]


def _subject(report: Report, op: str, device: str) -> str:
    """The name of an operator, with the device if there are several."""
    return short(report, op) + _on(report, device)


def _on(report: Report, device: str) -> str:
    return f" on {device}" if len({cell.device for cell in report.cells}) > 1 else ""


def _places(report: Report, cells: Sequence[Cell]) -> str:
    """A description of the cells; it names the operators unless it covers all of them."""
    everybody = len(rows(report))
    by_runtime: dict[str, list[str]] = {}
    for cell in cells:
        by_runtime.setdefault(cell.runtime, []).append(_subject(report, cell.op, cell.device))
    by_subjects: dict[tuple[str, ...], list[str]] = {}
    for runtime, subjects in by_runtime.items():
        by_subjects.setdefault(tuple(subjects), []).append(runtime)
    return "; ".join(
        ", ".join(names) + (f" of {', '.join(subjects)}" if len(subjects) < everybody else "")
        for subjects, names in by_subjects.items()
    )
