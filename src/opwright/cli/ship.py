"""`opwright ship`: writes a bundle of a model and its operators."""

from __future__ import annotations

from typing import Annotated

import typer

from opwright.cli import bundle_options
from opwright.cli.output import JsonOption, stderr


def ship(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="file.py:callable, package.module:callable, or a saved model (.pt, .pt2)."
        ),
    ],
    *,
    output: bundle_options.OutputOption,
    ops: bundle_options.LibrariesOption = None,
    format: bundle_options.FormatOption = "torchscript",
    cpu: bundle_options.CpuOption = "native",
    precision: bundle_options.PrecisionOption = "float32",
    weights: bundle_options.WeightsOption = None,
    samples: bundle_options.SamplesOption = None,
    shape: bundle_options.ShapesOption = None,
    tolerance: bundle_options.ToleranceOption = None,
    self_contained: bundle_options.SelfContainedOption = False,
    force: bundle_options.ForceOption = False,
    verbose: bundle_options.VerboseOption = False,
    json: JsonOption = None,
) -> None:
    """Write a model and its operators into one folder, a bundle.

    A process without Python runs the bundle. The callable takes no arguments and returns a module. Its file may also
    define samples(), a generator of inputs; shapes, a dict such as {"image": "float32[1..64,3,224,224]"}; and images,
    which describes how a picture becomes an input. The samples are run again after each transform; a transform that
    changes results is refused.

    Examples:

        opwright ship model.py:net --ops ops/mine -o build/net

        opwright ship model.py:net -o build/net --weights net.pth --force

        opwright ship package.models:net -o net --format aoti --cpu x86-64-v3

        opwright ship saved.pt -o build/net --shape "image=float32[1..64,3,224,224]"
    """
    from opwright.bundle.ship import ship as ship_model
    from opwright.report.progress import Progress

    shipped = ship_model(
        model,
        ops or (),
        output=output,
        format=format,
        cpu=cpu,
        precision=precision,
        weights=weights,
        samples=samples,
        shapes=bundle_options.named_shapes(shape),
        tolerance=tolerance,
        self_contained=self_contained,
        force=force,
        progress=Progress(output.name, verbose=verbose, console=stderr()),
    )
    bundle_options.report(shipped, json)
