"""`opwright check --mutants`: shows the changes of the sources that a check does not notice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opwright.cli.output import print_annotations, stderr, stdout, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def check_mutants(
    path: Path,
    count: int,
    selection: Mapping[str, Any],
    *,
    html: Path | None,
    github: bool,
    verbose: bool,
    json: str | None,
) -> None:
    """Check `count` mutants of the library at `path`, and report them as the options request."""
    from opwright.checker.mutants import run
    from opwright.checker.mutants.report.html import page
    from opwright.checker.mutants.report.progress import MutantProgress
    from opwright.checker.mutants.report.terminal import show

    with MutantProgress(path.resolve().name, stderr(), verbose=verbose) as progress:
        report = run.check_mutants(path, count, **selection, progress=progress)
    if json != "-":
        show(report, stdout())
    if html is not None:
        write_text("--html", str(html), page(report))
    if json is not None:
        write_json(json, report.to_json())
    if github:
        from opwright.checker.report.github import survivor_annotations

        print_annotations(survivor_annotations(report))
    if not report.passed:
        click.get_current_context().exit(1)
