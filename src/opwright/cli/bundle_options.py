"""Options and output of the verbs that write a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opwright.bundle.choices import FORMATS, LEVELS, PRECISIONS
from opwright.cli.arguments import one_of
from opwright.cli.output import stdout, write_json

if TYPE_CHECKING:
    from opwright.bundle.ship import Shipped

OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="BUNDLE", help="The folder to write.")]
LibrariesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ops", metavar="PATH", help="Operator library: a folder with an op.py, or a shared object; repeat for more."
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="NAME", help=f"Format of the model: {' or '.join(FORMATS)}.", callback=one_of(FORMATS)
    ),
]
CpuOption = Annotated[
    str,
    typer.Option(
        "--cpu",
        metavar="LEVEL",
        help=f"Processor that a package is compiled for: {', '.join(LEVELS)}.",
        callback=one_of(tuple(LEVELS)),
    ),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="NAME",
        help=f"Precision of the computation: {' or '.join(PRECISIONS)}.",
        callback=one_of(PRECISIONS),
    ),
]
WeightsOption = Annotated[
    Path | None, typer.Option("--weights", metavar="FILE", help="Weights of the model: a file with a state dict.")
]
SamplesOption = Annotated[
    Path | None, typer.Option("--samples", metavar="FILE", help="Sample inputs: a .npy, .npz or .pt file.")
]
ShapesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DTYPE[DIMS]",
        help="Shape of an input, such as image=float32[1..64,3,224,224]; repeat for more.",
    ),
]
ToleranceOption = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        metavar="X",
        help="Allowed deviation from the model's results, relative to the largest magnitude, such as 1e-4.",
    ),
]
SelfContainedOption = Annotated[
    bool, typer.Option("--self-contained", help="Include the host program and PyTorch's libraries.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing bundle.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Print each step.")]


def named_shapes(given: list[str] | None) -> dict[str, str]:
    """The values of `--shape`, by the name of the input."""
    return dict(map(_named, given or ()))


def report(shipped: Shipped, json: str | None) -> None:
    """Print a bundle that was written, with its notes."""
    for note in shipped.notes:
        typer.echo(f"note: {note}", err=True)
    if json is not None:
        write_json(json, _result(shipped))
    if json != "-":
        _show(shipped)


def _named(text: str) -> tuple[str, str]:
    name, sign, shape = text.partition("=")
    if not sign or not name.strip():
        msg = f"{text!r} is not NAME=SHAPE; expected for example image=float32[1..64,3,224,224]"
        raise typer.BadParameter(msg, param_hint="--shape")
    return name.strip(), shape


def _result(shipped: Shipped) -> dict[str, Any]:
    return {
        "path": str(shipped.path),
        "differences": shipped.differences,
        "differences_by_output": shipped.by_output,
        "notes": list(shipped.notes),
        "manifest": shipped.manifest.to_builtins(),
    }


def _show(shipped: Shipped) -> None:
    """Print the files with their sizes, and each output's deviation from the model's after each transform."""
    from rich.table import Table

    from opwright.report.format import format_bytes

    console = stdout()
    files = Table(box=None, pad_edge=False, header_style="dim")
    files.add_column("file")
    files.add_column("size", justify="right")
    for name, facts in shipped.manifest.files.items():
        files.add_row(name, format_bytes(facts.bytes))
    console.print(files)
    console.print()
    steps = Table(box=None, pad_edge=False, header_style="dim")
    steps.add_column("difference after")
    for output in shipped.manifest.outputs:
        steps.add_column(output.name, justify="right")
    for step, outputs in shipped.by_output.items():
        steps.add_row(step, *(f"{found:.1e}" if found else "0" for found in outputs.values()))
    console.print(steps)
    console.print()
    typer.echo(str(shipped.path))
