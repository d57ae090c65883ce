"""The report of a bench as an HTML page."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.bencher.report import digest
from opwright.errors import ToolchainError
from opwright.report.format import duration, format_bytes, format_seconds
from opwright.report.page import render_page

if TYPE_CHECKING:
    from opwright.bencher.result import Report

_TEMPLATE = Path(__file__).with_name("bench.html.jinja")


def check_plots() -> None:
    """Check that the plots of a page can be drawn; call this before a bench that takes minutes.

    Raises:
        ToolchainError: matplotlib, which the extra `plots` installs, cannot be imported.
    """
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        msg = (
            f"the page of a bench has plots, which need matplotlib, and it cannot be imported ({error}): "
            'install it with pip install "opwright[plots]", or omit --html'
        )
        raise ToolchainError(msg) from error


def page(report: Report) -> str:
    """The report as an HTML page: one self-contained file, with all text escaped.

    Raises:
        ToolchainError: matplotlib cannot be imported.
    """
    check_plots()
    from opwright.bencher.report.plots import plot

    groups = digest.groups(report)
    plots = [
        plot(group, f"plot-{number}") if any(cell.timing("reference") for cell in group.cells) else ""
        for number, group in enumerate(groups, start=1)
    ]
    return render_page(
        _TEMPLATE,
        tool="opwright bench",
        subject=report.namespace,
        outcome=digest.outcome(report),
        tally=digest.tally(report),
        facts={
            "folder": report.path,
            **report.machine.facts(),
            "seed": str(report.seed),
            "stopping rule": report.rule,
            "time": duration(report.seconds),
        },
        groups=list(zip(groups, plots, strict=True)),
        what_rows_are={
            name: what for name, what in digest.WHAT_ROWS_ARE.items() if any(name in group.rows for group in groups)
        },
        remarks=digest.remarks(report),
        row_of=digest.row_of,
        format_spread=digest.format_spread,
        format_processors=digest.format_processors,
        format_ratio=digest.format_ratio,
        gpu_lines=digest.gpu_lines,
        gpu_legend=digest.GPU_LEGEND,
        format_bytes=format_bytes,
        format_seconds=format_seconds,
        seed=report.seed,
    )
