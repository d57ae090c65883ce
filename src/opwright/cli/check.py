"""`opwright check`: checks every operator of a library in every runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwright.checker.runtime_table import RUNTIME_NAMES
from opwright.checker.sanitize import SANITIZERS
from opwright.cli.arguments import DevicesOption, LibraryArgument, OpsOption, some_of
from opwright.cli.output import JsonOption, stderr, stdout, write_json, write_text


def _listed(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def check(
    path: LibraryArgument,
    *,
    op: OpsOption = None,
    runtime: Annotated[
        list[str] | None,
        typer.Option(
            "--runtime",
            metavar="NAME",
            help=f"Only this runtime: {', '.join(RUNTIME_NAMES)}.",
            callback=some_of(RUNTIME_NAMES),
        ),
    ] = None,
    device: DevicesOption = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random inputs.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer cases, and only runtimes that compile nothing: seconds, not minutes.")
    ] = False,
    large: Annotated[
        bool, typer.Option("--large", help="Also use tensors larger than 2^31 bytes, where memory allows.")
    ] = False,
    sanitize: Annotated[
        str,
        typer.Option(
            "--sanitize",
            metavar="LIST",
            help=f"Build with sanitizers first: {', '.join(SANITIZERS)}.",
            callback=lambda given: ",".join(some_of(SANITIZERS)(_listed(given)) or ()),
        ),
    ] = "",
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report as an HTML page.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each cell as it finishes.")] = False,
    json: JsonOption = None,
) -> None:
    """Check every operator of a library in every runtime.

    The reference in op.py is the specification. A failure shows the call, the actual and the expected result, the
    likely cause and the fix. Exits with 1 if something is wrong or nothing could be run.

    Examples:

        opwright check ops/mine

        opwright check ops/mine --quick

        opwright check ops/mine --op scale --runtime eager --runtime host-script

        opwright check ops/mine --sanitize address,undefined

        opwright check ops/mine --html report.html --json report.json
    """
    from opwright.checker.check import check as check_library
    from opwright.checker.report.progress import CheckProgress
    from opwright.checker.report.terminal import show

    with CheckProgress(path.resolve().name, stderr(), verbose=verbose) as progress:
        report = check_library(
            path,
            ops=op or (),
            runtimes=runtime or (),
            devices=device or (),
            seed=seed,
            quick=quick,
            large=large,
            sanitize=_listed(sanitize),
            progress=progress,
        )
    if json != "-":
        show(report, stdout())
    if html is not None:
        from opwright.checker.report.html import page

        write_text("--html", str(html), page(report))
    if json is not None:
        write_json(json, report.to_json())
    if not report.ran and not report.failures:
        typer.echo(
            "error: nothing was checked: no cell ran, for the reasons above. Choose runtimes and devices that apply",
            err=True,
        )
    if not report.passed:
        raise typer.Exit(1)
