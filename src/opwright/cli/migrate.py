"""`opwright migrate`: rebuilds a TorchScript model from its source as a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import PATH
from opwright.cli.bundle_options import bundle_options, named_shapes, report
from opwright.cli.output import stderr

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Unpack

    from opwright.cli.bundle_options import BundleOptions


@click.command
@click.argument("saved", metavar="MODEL.pt", type=PATH)
@click.option(
    "--source",
    metavar="MODEL",
    required=True,
    help="Source of the model: file.py:callable or package.module:callable.",
)
@bundle_options(default_format="aoti")
def migrate(
    saved: Path,
    *,
    source: str,
    ops: tuple[str, ...],
    shapes: tuple[str, ...],
    verbose: bool,
    json: str | None,
    **options: Unpack[BundleOptions],
) -> None:
    """Write a bundle from the source of a TorchScript model.

    Compiles the model with AOTInductor unless --format selects another format. Loads the weights of MODEL.pt into the
    module that the source creates, and compares its results, and those of the compiled model, with MODEL.pt's, output
    by output. The goldens of the bundle are the results of MODEL.pt.

    Examples:

        opwright migrate old.pt --source model.py:net --ops ops/mine -o net

        opwright migrate old.pt --source model.py:net --weights w.pth -o net
    """
    from opwright.bundle.ship import ship as ship_model
    from opwright.report.progress import Progress

    shipped = ship_model(
        source,
        ops,
        like=saved,
        shapes=named_shapes(shapes),
        progress=Progress(options["output"].name, verbose=verbose, console=stderr()),
        **options,
    )
    report(shipped, json)
