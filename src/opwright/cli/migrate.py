"""`opwright migrate`: rebuilds a TorchScript model from its source as a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwright.cli import bundle_options
from opwright.cli.output import JsonOption, stderr


def migrate(
    saved: Annotated[Path, typer.Argument(metavar="MODEL.pt", help="The TorchScript model.")],
    *,
    source: Annotated[
        str,
        typer.Option("--source", metavar="MODEL", help="Its source: file.py:callable or package.module:callable."),
    ],
    output: bundle_options.OutputOption,
    ops: bundle_options.LibrariesOption = None,
    format: bundle_options.FormatOption = "aoti",
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
    """Write a bundle from the source of a TorchScript model.

    AOTInductor compiles it, unless --format says otherwise. The module that the source makes gets the weights of
    MODEL.pt. Its results, and those of the compiled model, are compared with MODEL.pt's, output by output. The goldens
    of the bundle are the results of MODEL.pt.

    Examples:

        opwright migrate old.pt --source model.py:net --ops ops/mine -o net

        opwright migrate frozen.pt --source model.py:net --weights net.pth -o net
    """
    from opwright.bundle.ship import ship
    from opwright.report.progress import Progress

    shipped = ship(
        source,
        ops or (),
        output=output,
        format=format,
        cpu=cpu,
        precision=precision,
        weights=weights,
        like=saved,
        samples=samples,
        shapes=bundle_options.named_shapes(shape),
        tolerance=tolerance,
        self_contained=self_contained,
        force=force,
        progress=Progress(output.name, verbose=verbose, console=stderr()),
    )
    bundle_options.report(shipped, json)
