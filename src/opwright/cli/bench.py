"""`opwright bench`: times the operators of a library against their references and their floors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opwright.bencher.result import DIRECTIONS
from opwright.cli.arguments import (
    devices_option,
    html_option,
    library_argument,
    ops_option,
    report_json_option,
    seed_option,
)
from opwright.cli.output import stderr, stdout, write_json, write_text

if TYPE_CHECKING:
    from pathlib import Path


@click.command
@library_argument
@ops_option
@devices_option
@click.option(
    "--threads",
    metavar="N",
    multiple=True,
    type=click.IntRange(min=1),
    help="Number of CPU threads; repeat to time several thread counts.",
)
@click.option(
    "--dtype",
    metavar="NAME",
    default="float32",
    show_default=True,
    help="Dtype of the floating-point tensors whose dtype the samples do not set.",
)
@click.option(
    *("--size", "sizes"), metavar="TEXT", multiple=True, help="Only sizes whose label contains TEXT; repeat for more."
)
@click.option(
    *("--direction", "directions"),
    metavar="NAME",
    multiple=True,
    type=click.Choice(DIRECTIONS),
    help="Only this direction; repeat for more: forward, recorded (forward, recorded by autograd), backward or both.",
)
@click.option(
    "--seconds",
    metavar="S",
    type=float,
    default=2.0,
    show_default=True,
    help="Time limit per cell; timing stops earlier if the rounds agree.",
)
@click.option("--rounds", metavar="N", type=click.IntRange(min=1), help="Run exactly N rounds per cell instead.")
@click.option(
    "--compile/--no-compile",
    "compiled",
    default=True,
    show_default=True,
    help="Time the compiled reference too (slow to start).",
)
@seed_option
@html_option
@click.option("--verbose", "-v", is_flag=True, help="Print each cell as it finishes.")
@report_json_option
def bench(
    path: Path,
    *,
    ops: tuple[str, ...],
    devices: tuple[str, ...],
    threads: tuple[int, ...],
    dtype: str,
    sizes: tuple[str, ...],
    directions: tuple[str, ...],
    seconds: float,
    rounds: int | None,
    compiled: bool,
    seed: int,
    html: Path | None,
    verbose: bool,
    json: str | None,
) -> None:
    """Time the operators of a library against their references.

    PATH is a folder with an op.py, or the file itself.

    Times the reference in op.py as plain PyTorch, the reference under torch.compile (on a GPU also with CUDA graphs),
    the operator, and the floor (the work that no implementation can avoid). Verifies results and gradients before it
    times anything, and again for some of the timed calls. Exits with 1 if a result is wrong, an implementation is
    faster than its floor allows, or nothing was timed.

    Examples:

        opwright bench ops/mine

        opwright bench ops/mine --threads 1 --threads 8

        opwright bench ops/mine --op scale --size 1024 --direction forward

        opwright bench ops/mine --device cuda --dtype bfloat16

        opwright bench ops/mine --html report.html --json report.json
    """
    from opwright.bencher.bench import bench as bench_library
    from opwright.bencher.report.progress import BenchProgress
    from opwright.bencher.report.terminal import show

    if html is not None:
        # Imported here, since only a page needs matplotlib, and checked before anything is timed.
        from opwright.bencher.report.html import check_plots, page

        check_plots()
    with BenchProgress(path.resolve().name, stderr(), verbose=verbose) as progress:
        report = bench_library(
            path,
            ops=ops,
            devices=devices,
            threads=threads,
            dtype=dtype,
            sizes=sizes,
            directions=directions,
            seconds=seconds,
            rounds=rounds,
            compiled=compiled,
            seed=seed,
            verbose=verbose,
            progress=progress,
        )
    if json != "-":
        show(report, stdout())
    if html is not None:
        write_text("--html", str(html), page(report))
    if json is not None:
        write_json(json, report.to_json())
    if not report.passed:
        click.get_current_context().exit(1)
