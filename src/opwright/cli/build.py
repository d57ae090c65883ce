"""`opwright build`: one shared object from one op library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwright.builder.compile import copy_to
from opwright.builder.library import build_library
from opwright.cli.arguments import LibraryArgument
from opwright.cli.output import JsonOption, stderr, stdout, write_json
from opwright.spec import library_at


def build(
    path: LibraryArgument,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Copy the shared object to FILE.")
    ] = None,
    cuda: Annotated[
        bool | None,
        typer.Option("--cuda/--no-cuda", help="Build the CUDA sources; by default where PyTorch is a CUDA build."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print each step.")] = False,
    json: JsonOption = None,
) -> None:
    """Build an op library into one shared object, and print where it is.

    The object opens with torch.ops.load_library, and in C++ with dlopen or by linking. A build is
    found again by its content: sources, the headers they really include, flags, compiler, PyTorch.

    Examples:

        opwright build ops/mine

        opwright build ops/mine -o libmine.so --json -
    """
    library = library_at(path)
    artefact = build_library(library, verbose=verbose, cuda=cuda)
    target = copy_to(artefact, output.absolute()) if output else artefact.path
    left_out = [source.name for source in library.sources if source not in artefact.plan.sources]
    if left_out:
        reason = (
            "as --no-cuda says" if cuda is False else "this PyTorch is a CPU build; --cuda compiles them all the same"
        )
        stderr().print(f"left out: {', '.join(left_out)} ({reason})", markup=False, soft_wrap=True)
    if artefact.log:
        stderr().print(artefact.log, markup=False, soft_wrap=True)
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
        stdout().print(str(target), markup=False, soft_wrap=True)
