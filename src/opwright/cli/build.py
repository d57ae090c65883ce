"""`opwright build`: builds an operator library into one shared object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import PATH, json_option, library_argument
from opwright.cli.output import write_json

if TYPE_CHECKING:
    from pathlib import Path


@click.command
@library_argument
@click.option("--output", "-o", metavar="FILE", type=PATH, help="Copy the shared object to FILE.")
@click.option("--cuda/--no-cuda", default=None, help="Build the CUDA sources; by default if PyTorch is a CUDA build.")
@click.option("--verbose", "-v", is_flag=True, help="Print each step.")
@json_option
def build(path: Path, *, output: Path | None, cuda: bool | None, verbose: bool, json: str | None) -> None:
    """Build an operator library into one shared object.

    PATH is a folder with an op.py, or the file itself. Prints the path of the object. Load it with
    torch.ops.load_library; in C++, link it or open it with dlopen. Builds are cached by content: sources, the
    headers they include, flags, compiler and PyTorch.

    Examples:

        opwright build ops/mine

        opwright build ops/mine -o libmine.so --json -
    """
    from opwright.builder.compile import copy_to
    from opwright.builder.library import build_library
    from opwright.spec import library_at

    library = library_at(path)
    artefact = build_library(library, verbose=verbose, cuda=cuda)
    target = copy_to(artefact, output.absolute()) if output else artefact.path
    left_out = [source.name for source in library.sources if source not in artefact.plan.sources]
    if left_out:
        reason = "--no-cuda" if cuda is False else "this PyTorch is a CPU build; --cuda compiles them anyway"
        click.echo(f"left out: {', '.join(left_out)} ({reason})", err=True)
    if artefact.log:
        click.echo(artefact.log, err=True)
    if json is not None:
        result = {
            "path": str(target),
            "namespace": library.namespace,
            "operators": [f"{library.namespace}::{schema}" for schema in library.schemas()],
            "abi": artefact.plan.abi,
            "cuda": artefact.plan.cuda,
            "left_out": left_out,
            "compiled": [str(source) for source in artefact.compiled],
            "seconds": round(artefact.seconds, 3),
        }
        write_json(json, result)
    if json != "-":
        click.echo(str(target))
