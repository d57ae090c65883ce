"""`opwright ship`: writes a bundle of a model and its operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opwright.cli.bundle_options import bundle_options, named_shapes, report
from opwright.cli.output import stderr

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from opwright.cli.bundle_options import BundleOptions


@click.command
@click.argument("model")
@bundle_options(default_format="torchscript")
def ship(
    model: str,
    *,
    ops: tuple[str, ...],
    shapes: tuple[str, ...],
    verbose: bool,
    json: str | None,
    **options: Unpack[BundleOptions],
) -> None:
    """Write a model and its operators to one folder, a bundle.

    Bundles run in a process without Python. MODEL is file.py:callable, package.module:callable, or a saved model (.pt,
    .pt2). The callable takes no arguments and returns a module. Its file may also define samples(), a generator of
    inputs; shapes, a dict such as {"image": "float32[1..64,3,224,224]"}; and images, which describes how an image file
    becomes an input. The samples are run again after each transform; the model is rejected if a transform changes the
    results.

    Examples:

        opwright ship model.py:net --ops ops/mine -o build/net

        opwright ship model.py:net -o build/net --weights net.pth --force

        opwright ship package.models:net -o net --format aoti --cpu x86-64-v3

        opwright ship model.py:net --ops ops/mine -o net --device cuda

        opwright ship saved.pt -o net --shape "x=float32[1..64,3,64,64]"
    """
    from opwright.bundle.ship import ship as ship_model
    from opwright.report.progress import Progress

    shipped = ship_model(
        model,
        ops,
        shapes=named_shapes(shapes),
        progress=Progress(options["output"].name, verbose=verbose, console=stderr()),
        **options,
    )
    report(shipped, json)
