"""`opwright check`: checks every operator of a library in every runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opwright.checker.runtime_table import RUNTIME_NAMES
from opwright.checker.sanitize import SANITIZERS
from opwright.cli.arguments import (
    PATH,
    devices_option,
    html_option,
    junit_option,
    library_argument,
    ops_option,
    report_json_option,
)
from opwright.cli.mutants import check_mutants
from opwright.cli.output import print_annotations, stderr, stdout, write_json, write_text
from opwright.cli.watch import WatchableCommand, list_reads_at_end

if TYPE_CHECKING:
    from pathlib import Path


def _files(context: click.Context, _option: click.Parameter, given: tuple[Path, ...]) -> tuple[Path, ...]:
    if given and context.params.get("mutants") is None:
        msg = "--file needs --mutants: a check without mutants changes no file."
        raise click.UsageError(msg)
    return given


def _sanitizers(_context: click.Context, _option: click.Parameter, given: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    return tuple(click.Choice(SANITIZERS)(name) for name in names)


@click.command(cls=WatchableCommand, done="passed")
@library_argument
@ops_option
@click.option(
    *("--runtime", "runtimes"),
    metavar="NAME",
    multiple=True,
    type=click.Choice(RUNTIME_NAMES),
    help=f"Only this runtime; repeat for more: {', '.join(RUNTIME_NAMES)}.",
)
@devices_option
@click.option(
    "--seed", metavar="N", type=int, help="Seed of inputs and variations; a new one for each check by default."
)
@click.option(
    "--quick",
    is_flag=True,
    help="Make fewer calls, and skip the slow runtimes (export, aoti, host-*); takes seconds instead of minutes.",
)
@click.option(
    "--large", is_flag=True, help="Also use tensors larger than 2^31 bytes (on a GPU, larger than 2^31 elements)."
)
@click.option(
    "--sanitize",
    metavar="LIST",
    default="",
    callback=_sanitizers,
    help="Build with sanitizers first: address, undefined, thread. Or run CUDA kernels under tools of NVIDIA's "
    "compute-sanitizer: memcheck, racecheck, initcheck, synccheck.",
)
@click.option(
    "--mutants",
    metavar="[N]",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=60,
    is_eager=True,  # --file reads it
    help="Make N small changes to the sources (60 by default), one at a time, and show those that the check misses.",
)
@click.option(
    "--file",
    "files",
    metavar="FILE",
    multiple=True,
    type=PATH,
    callback=_files,
    help="With --mutants: change only this file; repeat for more.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first failure; run the quickest runtimes first.")
@html_option
@junit_option
@click.option("--github", is_flag=True, help="Also print each failure as a GitHub workflow annotation.")
@click.option("--verbose", "-v", is_flag=True, help="Print each cell as it finishes.")
@report_json_option
def check(
    path: Path,
    *,
    ops: tuple[str, ...],
    runtimes: tuple[str, ...],
    devices: tuple[str, ...],
    seed: int | None,
    quick: bool,
    large: bool,
    sanitize: tuple[str, ...],
    mutants: int | None,
    files: tuple[Path, ...],
    fail_fast: bool,
    html: Path | None,
    junit: Path | None,
    github: bool,
    verbose: bool,
    json: str | None,
) -> None:
    """Check every operator of a library in every runtime.

    PATH is a folder with an op.py, or the file itself.

    The reference in op.py is the specification. For each failure, the report shows the call, the actual and the
    expected result, the likely cause and the fix. Exits with 1 if a cell fails or nothing could be run.

    Examples:

        opwright check ops/mine

        opwright check ops/mine --quick

        opwright check ops/mine --op scale --runtime eager --runtime host-script

        opwright check ops/mine --sanitize address,undefined

        opwright check ops/mine --device cuda --sanitize memcheck,racecheck

        opwright check ops/mine --mutants 100 --file ops/mine/cpu.cpp

        opwright check ops/mine --html report.html --json report.json

        opwright check ops/mine --quick --watch
    """
    selection: dict[str, Any] = {"ops": ops, "runtimes": runtimes, "devices": devices, "seed": seed, "quick": quick}
    if mutants is not None:
        excluded = {"--large": large, "--sanitize": sanitize, "--fail-fast": fail_fast, "--junit": junit is not None}
        if given := [option for option, is_given in excluded.items() if is_given]:
            msg = f"--mutants excludes {' and '.join(given)}: leave one of them out."
            raise click.UsageError(msg)
        selection["files"] = files
        check_mutants(path, mutants, selection, html=html, github=github, verbose=verbose, json=json)
        return
    from opwright.builder.files_read import files_of
    from opwright.checker.check import check as check_library
    from opwright.checker.report.progress import CheckProgress
    from opwright.checker.report.terminal import show
    from opwright.spec import library_at

    library = library_at(path)
    list_reads_at_end(lambda: files_of(library))
    with CheckProgress(path.resolve().name, stderr(), verbose=verbose) as progress:
        report = check_library(
            library, **selection, large=large, sanitize=sanitize, fail_fast=fail_fast, progress=progress
        )
    if json != "-":
        show(report, stdout())
    if html is not None:
        from opwright.checker.report.html import page

        write_text("--html", str(html), page(report))
    if junit is not None:
        from opwright.checker.report.junit import junit as junit_of

        write_text("--junit", str(junit), junit_of(report))
    if json is not None:
        write_json(json, report.to_json())
    if github:
        from opwright.checker.report.github import fault_annotations

        print_annotations(fault_annotations(report, library))
    if not report.ran and not report.failures:
        click.echo(
            "error: nothing was checked: no cell ran, for the reasons above. Choose runtimes and devices that apply",
            err=True,
        )
    if not report.passed:
        click.get_current_context().exit(1)
