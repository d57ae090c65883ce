"""The report of a check as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opwright.checker.report import digest
from opwright.report.format import duration
from opwright.report.page import render_page

if TYPE_CHECKING:
    from opwright.checker.report.digest import Fault
    from opwright.checker.verdict import Cell, Report

_TEMPLATE = Path(__file__).with_name("check.html.jinja")


def page(report: Report) -> str:
    """Return the report as a single HTML page that needs no other files or network access, with all text escaped."""
    faults = digest.faults(report)
    faults_of: dict[Cell, list[tuple[int, Fault]]] = {}
    for number, fault in enumerate(faults, start=1):
        for sight in fault.sights:
            if sight.cell:
                faults_of.setdefault(sight.cell, []).append((number, fault))
    return render_page(
        _TEMPLATE,
        tool="opwright check",
        subject=report.namespace,
        outcome=digest.outcome(report),
        tally=digest.tally(report),
        facts={
            "folder": report.path,
            "PyTorch": report.pytorch,
            "machine": report.machine,
            "seed": str(report.seed),
            "sanitizers": ", ".join(report.sanitize),
            "time": duration(report.seconds),
        },
        seed=report.seed,
        marks=digest.MARKS,
        runtimes=digest.runtimes(report),
        rows=digest.rows(report),
        faults=faults,
        faults_of=faults_of,
        remarks=digest.remarks(report),
    )
