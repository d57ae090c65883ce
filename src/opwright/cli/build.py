"""`opwright build`: builds an operator library into one shared object."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwright.cli.arguments import LibraryArgument
from opwright.cli.output import JsonOption, write_json


def build(
    path: LibraryArgument,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Copy the shared object to FILE.")
    ] = None,
    cuda: Annotated[
        bool | None,
        typer.Option("--cuda/--no-cuda", help="Build the CUDA sources; by default if PyTorch is a CUDA build."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each step.")] = False,
    json: JsonOption = None,
) -> None:
    """Build an operator library into one shared object.

    Prints its path. Load it with torch.ops.load_library; in C++, link it or open it with dlopen. Builds are cached by
    content: sources, the headers they include, flags, compiler and PyTorch.

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
        typer.echo(f"left out: {', '.join(left_out)} ({reason})", err=True)
    if artefact.log:
        typer.echo(artefact.log, err=True)
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
        typer.echo(str(target))
