"""Options and output of the verbs that write a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from opwright.bundle.choices import FORMATS, LEVELS, PRECISIONS
from opwright.cli.arguments import PATH, json_option
from opwright.cli.output import stdout, write_json
from opwright.toolchain.devices import DEVICES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opwright.bundle.ship import Shipped

F = TypeVar("F", bound="Callable[..., Any]")


class BundleOptions(TypedDict):
    """The options that `bundle_options` adds, except --shape, --verbose and --json; `ship` accepts them all."""

    output: Path
    format: str
    cpu: str
    precision: str
    device: str
    weights: Path | None
    samples: Path | None
    tolerance: float | None
    self_contained: bool
    trust: bool
    force: bool


def bundle_options(*, default_format: str) -> Callable[[F], F]:
    """Add the options of a verb that writes a bundle.

    Args:
        default_format: the default of --format.
    """
    options = (
        click.option("--output", "-o", metavar="BUNDLE", type=PATH, required=True, help="The folder to write."),
        click.option(
            "--ops",
            metavar="PATH",
            multiple=True,
            help="Operator library: a folder with an op.py, or a shared object; repeat for more.",
        ),
        click.option(
            "--format",
            metavar="NAME",
            type=click.Choice(FORMATS),
            default=default_format,
            show_default=True,
            help=f"Format of the model: {' or '.join(FORMATS)}.",
        ),
        click.option(
            "--cpu",
            metavar="LEVEL",
            type=click.Choice(tuple(LEVELS)),
            default="native",
            show_default=True,
            help=f"With --format aoti: processor that the model is compiled for: {', '.join(LEVELS)}.",
        ),
        click.option(
            "--precision",
            metavar="NAME",
            type=click.Choice(PRECISIONS),
            default="float32",
            show_default=True,
            help=f"Precision of the computation: {' or '.join(PRECISIONS)}.",
        ),
        click.option(
            "--device",
            metavar="NAME",
            type=click.Choice(DEVICES),
            default="cpu",
            show_default=True,
            help=f"Where the model will run: {' or '.join(DEVICES)}.",
        ),
        click.option("--weights", metavar="FILE", type=PATH, help="Weights of the model: a file with a state dict."),
        click.option("--samples", metavar="FILE", type=PATH, help="Sample inputs: a .npy, .npz or .pt file."),
        click.option(
            *("--shape", "shapes"),
            metavar="NAME=DTYPE[DIMS]",
            multiple=True,
            help="Shape of an input, such as image=float32[1..64,3,224,224]; repeat for more.",
        ),
        click.option(
            "--tolerance",
            metavar="X",
            type=float,
            help="Allowed deviation of each element from the model's result, relative to its scale, such as 1e-4.",
        ),
        click.option("--self-contained", is_flag=True, help="Include the host program and PyTorch's libraries."),
        click.option(
            "--trust",
            is_flag=True,
            help="Load saved models, which can run arbitrary code with your permissions. Use it only for files from a "
            "source that you trust.",
        ),
        click.option("--force", is_flag=True, help="Replace an existing bundle."),
        click.option("--verbose", "-v", is_flag=True, help="Print each step."),
        json_option,
    )

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def named_shapes(given: tuple[str, ...]) -> dict[str, str]:
    """The values of `--shape`, by the name of the input."""
    return dict(map(_named, given))


def report(shipped: Shipped, json: str | None) -> None:
    """Print a bundle that was written, and its notes."""
    for note in shipped.notes:
        click.echo(f"note: {note}", err=True)
    if json is not None:
        write_json(json, _result(shipped))
    if json != "-":
        _show(shipped)


def _named(text: str) -> tuple[str, str]:
    name, sign, shape = text.partition("=")
    if not sign or not name.strip():
        msg = f"{text!r} is not NAME=SHAPE; expected for example image=float32[1..64,3,224,224]"
        raise click.BadParameter(msg, param_hint="--shape")
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
    click.echo(str(shipped.path))
