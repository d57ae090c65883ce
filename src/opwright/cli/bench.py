"""`opwright bench`: times the operators of a library against their references and their floors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwright.bencher.result import DIRECTIONS
from opwright.cli.arguments import DevicesOption, LibraryArgument, OpsOption, some_of
from opwright.cli.output import JsonOption, stderr, stdout, write_json, write_text


def bench(
    path: LibraryArgument,
    *,
    op: OpsOption = None,
    device: DevicesOption = None,
    threads: Annotated[
        list[int] | None,
        typer.Option("--threads", metavar="N", min=1, help="CPU threads; repeat to time each in turn."),
    ] = None,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="NAME", help="Dtype of floating tensors that the samples leave open.")
    ] = "float32",
    size: Annotated[
        list[str] | None,
        typer.Option("--size", metavar="TEXT", help="Only sizes whose label contains TEXT; repeat for more."),
    ] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(
            "--direction",
            metavar="NAME",
            help="Only this direction: forward, recorded (forward, recorded by autograd), backward or both.",
            callback=some_of(DIRECTIONS),
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="S", help="Time limit per cell; less if the rounds agree earlier."),
    ] = 2.0,
    rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="N", min=1, help="Run exactly N rounds per cell instead.")
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compile/--no-compile", help="Time the compiled reference too (slow to start).")
    ] = True,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random inputs.")] = 0,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report as an HTML page.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each cell as it finishes.")] = False,
    json: JsonOption = None,
) -> None:
    """Time the operators of a library against their references.

    Rows: the reference in op.py as plain PyTorch, the reference under torch.compile, the operator, and the floor (the
    work that no implementation can avoid). Results and gradients are compared before anything is timed. Exits with 1
    if one is wrong or nothing was timed.

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
            ops=op or (),
            devices=device or (),
            threads=threads or (),
            dtype=dtype,
            sizes=size or (),
            directions=direction or (),
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
        raise typer.Exit(1)
