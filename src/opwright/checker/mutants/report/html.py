"""The report of a check of mutants as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opwright.checker.mutants.report.digest import ADVICE, tally
from opwright.report.format import duration
from opwright.report.page import render_page

if TYPE_CHECKING:
    from opwright.checker.mutants.score import MutationReport

_TEMPLATE = Path(__file__).with_name("mutants.html.jinja")


def page(report: MutationReport) -> str:
    """Return the report as a single HTML page that needs no other files or network access, with all text escaped."""
    outcome = "passed" if report.passed else "failed" if report.survivors else "nothing ran"
    return render_page(
        _TEMPLATE,
        tool="opwright check --mutants",
        subject=report.namespace,
        outcome=outcome,
        tally=tally(report),
        facts={
            "folder": report.path,
            "PyTorch": report.pytorch,
            "machine": report.machine,
            "check": "quick" if report.quick else "full",
            "seed": str(report.seed),
            "possible mutants": str(report.possible),
            "time": duration(report.seconds),
        },
        seed=report.seed,
        advice=ADVICE,
        survivors=report.survivors,
        others=[result for result in report.results if result.fate != "survived"],
    )
