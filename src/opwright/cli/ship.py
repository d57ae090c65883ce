"""`opwright ship`: a bundle of a model and its operators."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opwright.cli.output import JsonOption, stderr, stdout, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opwright.bundle.ship import Shipped

_FORMATS = ("torchscript", "aoti")
_PRECISIONS = ("float32", "bfloat16")
_LEVELS = ("native", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


def _one_of(known: Sequence[str]) -> Callable[[str], str]:
    """What an option does with the name that it is given: it has to be known."""

    def checked(given: str) -> str:
        if given not in known:
            msg = f"{given!r} is unknown: expected {', '.join(known[:-1])} or {known[-1]}"
            raise typer.BadParameter(msg)
        return given

    return checked


def ship(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="file.py:callable, package.module:callable, or a saved model (.pt, .pt2)."
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="BUNDLE", help="The folder to write.")],
    ops: Annotated[
        list[str] | None,
        typer.Option("--ops", metavar="PATH", help="An operator library: a folder of an op.py, or a shared object."),
    ] = None,
    format: Annotated[  # noqa: A002  the name of the option
        str,
        typer.Option("--format", metavar="NAME", help=f"{' or '.join(_FORMATS)}.", callback=_one_of(_FORMATS)),
    ] = "torchscript",
    cpu: Annotated[
        str,
        typer.Option(
            "--cpu",
            metavar="LEVEL",
            help=f"What a package is compiled for: {', '.join(_LEVELS)}.",
            callback=_one_of(_LEVELS),
        ),
    ] = "native",
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            metavar="NAME",
            help=f"What is computed in inside: {' or '.join(_PRECISIONS)}.",
            callback=_one_of(_PRECISIONS),
        ),
    ] = "float32",
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="FILE", help="The model's weights: a state dict.")
    ] = None,
    samples: Annotated[
        Path | None, typer.Option("--samples", metavar="FILE", help="Sample inputs: .npy, .npz or .pt.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="NAME=DTYPE[DIMS]",
            help="An input's shape: image=float32[1..64,3,224,224]; several times.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            metavar="X",
            help="How far results may lie from eager PyTorch's: 1e-4 of the largest magnitude.",
        ),
    ] = None,
    self_contained: Annotated[
        bool, typer.Option("--self-contained", help="Put the host program and PyTorch's libraries in as well.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Take the place of a bundle that is there.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each step.")] = False,
    json: JsonOption = None,
) -> None:
    """Write a bundle: a folder from which a process without Python runs a model.

    The callable takes nothing and returns a module. Beside it there may be samples(), which yields inputs, shapes, a
    dict such as {"image": "float32[1..64,3,224,224]"}, and images, which says how a picture becomes an input. After
    each transform the samples are run again: one that changes results is refused.

    Examples:

        opwright ship model.py:net --ops ops/mine -o build/net

        opwright ship model.py:net --ops ops/mine -o build/net --weights net.pth --force

        opwright ship package.models:net -o build/net --format aoti --cpu x86-64-v3 --precision bfloat16

        opwright ship saved.pt -o build/net --shape "image=float32[1..64,3,224,224]"
    """
    # Imported here: this needs torch, for which no other verb's user should wait.
    from opwright.bundle.progress import ShipProgress  # noqa: PLC0415  as said
    from opwright.bundle.ship import ship as ship_model  # noqa: PLC0415  as said

    with ShipProgress(stderr(), verbose=verbose) as progress:
        shipped = ship_model(
            model,
            ops or (),
            output=output,
            format=format,
            cpu=cpu,
            precision=precision,
            weights=weights,
            samples=samples,
            shapes=dict(map(_named, shape or ())),
            tolerance=tolerance,
            self_contained=self_contained,
            force=force,
            progress=progress,
        )
    for note in shipped.notes:
        stderr().print(f"note: {note}", markup=False, soft_wrap=True)
    if json is not None:
        write_json(json, _result(shipped))
    if json != "-":
        _show(shipped)


def _named(text: str) -> tuple[str, str]:
    name, sign, shape = text.partition("=")
    if not sign or not name.strip():
        msg = f"{text!r} is no NAME=SHAPE: expected such as image=float32[1..64,3,224,224]"
        raise typer.BadParameter(msg, param_hint="--shape")
    return name.strip(), shape


def _result(shipped: Shipped) -> dict[str, Any]:
    return {
        "path": str(shipped.path),
        "differences": shipped.differences,
        "notes": list(shipped.notes),
        "manifest": asdict(shipped.manifest),
    }


def _show(shipped: Shipped) -> None:
    """The files with their sizes, and how far each transform lies from eager PyTorch."""
    from rich.table import Table  # noqa: PLC0415  slow to import, and wanted here alone

    from opwright.report.words import of_bytes  # noqa: PLC0415  as above

    console = stdout()
    files = Table(box=None, pad_edge=False, header_style="dim")
    files.add_column("file")
    files.add_column("size", justify="right")
    for name, facts in shipped.manifest.files.items():
        files.add_row(name, of_bytes(facts.bytes))
    console.print(files)
    console.print()
    steps = Table(box=None, pad_edge=False, header_style="dim")
    steps.add_column("transform")
    steps.add_column("difference", justify="right")
    for name, found in shipped.differences.items():
        steps.add_row(name, f"{found:.1e}" if found else "0")
    console.print(steps)
    console.print()
    console.print(f"{shipped.path}", markup=False, soft_wrap=True)
