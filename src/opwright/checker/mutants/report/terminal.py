"""Prints a report of mutants on the terminal: each survivor as a diff, and the score as the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.mutants.report.digest import ADVICE, verdict
from opwright.report.terminal import paragraph, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from opwright.checker.mutants.score import MutantResult, MutationReport
    from opwright.report.terminal import Pieces

_STYLES = {"-": "red", "+": "green", "@": "cyan"}


def show(report: MutationReport, console: Console) -> None:
    """Print a report: the survivors, and a verdict as the last line."""
    print_lines(_report(report, console), console)


def _report(report: MutationReport, console: Console) -> Iterator[Pieces]:
    facts = (report.namespace, report.path, f"PyTorch {report.pytorch}", report.machine)
    yield [(" · ".join(fact for fact in facts if fact), "dim")]
    yield []
    for result in report.survivors:
        yield from _survivor(result)
        yield []
    if report.survivors:
        yield from paragraph("  fix  ", ADVICE, console.width if console.is_terminal else None)
        yield []
    style = "bold green" if report.passed else "bold red" if report.survivors else "bold yellow"
    yield [(verdict(report), style)]


def _survivor(result: MutantResult) -> Iterator[Pieces]:
    mutant = result.mutant
    place = f"{mutant.file}:{mutant.line}:{mutant.column}"
    yield [("survived", "bold red"), (f"  {place}: ", "bold"), (mutant.edit.change.value, "")]
    for line in mutant.diff().splitlines()[2:]:
        yield [(line, _STYLES.get(line[:1], ""))]
