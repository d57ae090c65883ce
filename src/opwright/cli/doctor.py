"""`opwright doctor`: prints what this machine can build and run, and what is missing."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import json_option
from opwright.cli.output import stdout, write_json
from opwright.errors import ToolchainError

if TYPE_CHECKING:
    from rich.table import Table

    from opwright.cli.findings import Finding


@click.command
@click.option(
    *("--package", "-p", "packages"),
    metavar="NAME",
    multiple=True,
    help="Also look for this pkg-config package; repeat for more.",
)
@json_option
def doctor(*, packages: tuple[str, ...], json: str | None) -> None:
    """Print what this machine can build and what is missing.

    Prints how to install each missing tool. Exits with 4 if a tool that every build needs is missing.

    Examples:

        opwright doctor

        opwright doctor --package opencv4 --json -
    """
    from opwright.cli.findings import find_all

    findings = find_all(packages)
    if json is not None:
        write_json(json, {"python": platform.python_version(), "findings": [asdict(finding) for finding in findings]})
    if json != "-":
        stdout().print(_table(findings))
    if any(finding.required and not finding.found for finding in findings):
        click.get_current_context().exit(ToolchainError.exit_code)


def _table(findings: list[Finding]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("", "what", "found, or how to install it", "needed for"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        mark = "[green]ok[/]" if finding.found else "[red]missing[/]" if finding.required else "[yellow]none[/]"
        table.add_row(mark, finding.what, finding.found or finding.advice, finding.needed)
    return table
