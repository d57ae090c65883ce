"""`opwright build`: builds an operator library into one shared object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import PATH, json_option, library_argument
from opwright.cli.output import write_json, write_text
from opwright.cli.watch import WatchableCommand, list_reads_at_end

if TYPE_CHECKING:
    from pathlib import Path

# A value that no file name has, for an option without one.
_IN_THE_LIBRARY = "\0"


@click.command(cls=WatchableCommand, done="built", unwatched=["setup"])
@library_argument
@click.option("--output", "-o", metavar="FILE", type=PATH, help="Copy the shared object to FILE.")
@click.option(
    "--cuda/--no-cuda",
    default=None,
    help="Build the CUDA sources; by default with a CUDA build of PyTorch, and nvcc or a GPU.",
)
@click.option("--debug", is_flag=True, help="Build for a debugger: without optimization, with debug information.")
@click.option(
    *("--compile-commands", "database"),
    metavar="[FILE]",
    is_flag=False,
    flag_value=_IN_THE_LIBRARY,
    help="Build nothing; write the compile commands, for clangd, to FILE (compile_commands.json next to op.py).",
)
@click.option("--verbose", "-v", is_flag=True, help="Print each step.")
@click.option("--setup", is_flag=True, help="PATH is a project with a setup.py: build its extensions in place.")
@click.option("--wheel", is_flag=True, help="With --setup: build a wheel, in PATH/dist or in the folder of --output.")
@json_option
def build(
    path: Path,
    *,
    output: Path | None,
    cuda: bool | None,
    debug: bool,
    database: str | None,
    verbose: bool,
    setup: bool,
    wheel: bool,
    json: str | None,
) -> None:
    """Build an operator library, or a project with a setup.py.

    PATH is a folder with an op.py, or the file itself. Prints the path of the shared object. Load it with
    torch.ops.load_library; in C++, link it or open it with dlopen. Builds are cached by content: sources, the headers
    they include, flags, compiler and PyTorch.

    With --setup, PATH is a project that builds with torch.utils.cpp_extension. It is built unchanged, with opwright's
    builder in place of PyTorch's. Prints the paths of its shared objects, or of its wheel.

    Examples:

        opwright build ops/mine

        opwright build ops/mine -o libmine.so --json -

        opwright build ops/mine --compile-commands

        opwright build ops/mine --watch

        opwright build --setup my_extension --wheel
    """
    if setup:
        if cuda is not None or debug or database is not None or (output is not None and not wheel):
            msg = (
                "--setup supports only --wheel, --verbose and --json, and --output with --wheel: the setup.py defines "
                "what is built, and where"
            )
            raise click.UsageError(msg)
        _build_project(path, output if wheel else None, wheel=wheel, verbose=verbose, json=json)
        return
    if wheel:
        msg = "--wheel builds a project with a setup.py: add --setup"
        raise click.UsageError(msg)
    _build_library(path, output, database, cuda=cuda, debug=debug, verbose=verbose, json=json)


def _build_library(
    path: Path,
    output: Path | None,
    database: str | None,
    *,
    cuda: bool | None,
    debug: bool,
    verbose: bool,
    json: str | None,
) -> None:
    from opwright.builder.compile import build_plan, copy_to
    from opwright.builder.compile_commands import FILE_NAME, is_from_opwright
    from opwright.builder.files_read import files_read
    from opwright.builder.library import describe
    from opwright.cache.cache import Cache
    from opwright.report.progress import Progress
    from opwright.toolchain.devices import why_no_cuda

    cache = Cache()
    described = describe(path, cache, cuda=cuda, debug=debug)
    library = described.library
    list_reads_at_end(lambda: [*described.python_files, *files_read(described.plan)])
    if database is not None:
        file = str(library.root / FILE_NAME) if database == _IN_THE_LIBRARY else database
        _write_commands(path, file, cuda=cuda)
        if file != "-":
            click.echo(file)
        return
    if is_from_opwright(library.root / FILE_NAME):
        _write_commands(path, str(library.root / FILE_NAME), cuda=cuda)
    artefact = build_plan(described.plan, cache=cache, progress=Progress(library.namespace, verbose=verbose))
    target = copy_to(artefact, output.absolute()) if output else artefact.path
    left_out = [source.name for source in library.sources if source not in artefact.plan.sources]
    if left_out:
        reason = "--no-cuda" if cuda is False else why_no_cuda()
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


def _build_project(path: Path, output: Path | None, *, wheel: bool, verbose: bool, json: str | None) -> None:
    from opwright.builder.setuptools.project import build_in_place, build_wheel
    from opwright.report.progress import Progress

    warnings: list[str] = []
    with Progress(path.absolute().name, verbose=verbose) as shown:

        def on_line(line: str) -> None:
            shown.step(line.strip())
            if "UserWarning: " in line:  # such as setuptools's about an unknown argument
                warnings.append(line.partition("UserWarning: ")[2].strip())

        built = build_wheel(path, output or path / "dist", on_line) if wheel else build_in_place(path, on_line)
    for warning in dict.fromkeys(warnings):
        click.echo(f"warning: {warning}", err=True)
    if not built.extensions:
        click.echo("opwright built nothing: this project has no extension of PyTorch's BuildExtension", err=True)
    if json is not None:
        result = {
            "wheel": str(built.wheel) if built.wheel else None,
            "extensions": built.extensions,
            "seconds": round(built.seconds, 3),
        }
        write_json(json, result)
    if json != "-":
        for made in [str(built.wheel)] if built.wheel else [str(extension["path"]) for extension in built.extensions]:
            click.echo(made)


def _write_commands(path: Path, target: str, *, cuda: bool | None) -> None:
    from opwright.builder.compile_commands import compile_commands
    from opwright.builder.library import describe
    from opwright.cache.cache import Cache

    # CUDA sources are included even if this PyTorch is a CPU build: users edit them there too.
    described = describe(path, Cache(), cuda=cuda is not False)
    write_text("--compile-commands", target, compile_commands(described.plan, described.library.root))
