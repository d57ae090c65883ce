"""`opwright doctor`: what this machine can build and run, and what is missing."""

from __future__ import annotations

import functools
import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.table import Table

from opwright.builder.cache import Cache
from opwright.builder.ninja import program as ninja_program
from opwright.cli.output import JsonOption, stdout, write_json
from opwright.errors import OpwrightError, ToolchainError
from opwright.host.install import PACKAGES as OF_THE_HOST
from opwright.toolchain.compiler import find_cxx, find_nvcc
from opwright.toolchain.packages import find_package
from opwright.toolchain.pytorch import find_pytorch


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        what: what it is.
        needed: what it is needed for.
        required: whether nothing can be built without it.
        found: what was found, and where; empty when it is missing.
        advice: how to get it; empty when it was found.
    """

    what: str
    needed: str
    required: bool
    found: str
    advice: str


def doctor(
    *,
    package: Annotated[
        list[str] | None,
        typer.Option("--package", "-p", metavar="NAME", help="Look for a pkg-config package too."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Print what this machine can build and run, what is missing, and how to get it.

    Exits with 4 when something is missing without which nothing can be built.

    Examples:

        opwright doctor

        opwright doctor --package opencv4 --json -
    """
    findings = [
        _look("PyTorch", "everything", _pytorch, required=True),
        _look("C++ compiler", "C++ sources", _cxx, required=True),
        _look("ninja", "compiling in parallel", ninja_program, required=True),
        _look("nvcc", "CUDA sources", _nvcc),
        _look("GPU", "running CUDA code", _gpu),
        _look("pkg-config", "libraries' packages= argument", lambda: _program("pkg-config")),
        _look("cmake", "the host, C++ applications", lambda: _program("cmake")),
        *(_look(name, "the host: running bundles", functools.partial(_of_the_host, name)) for name in OF_THE_HOST),
        *(
            _look(f"package {name}", "what you asked for", functools.partial(_package, name), required=True)
            for name in package or []
        ),
        _look("cache", "finding builds again", _cache, required=True),
    ]
    if json is not None:
        write_json(json, {"python": platform.python_version(), "findings": [asdict(finding) for finding in findings]})
    if json != "-":
        stdout().print(_table(findings))
    if any(finding.required and not finding.found for finding in findings):
        raise typer.Exit(ToolchainError.exit_code)


def _look(what: str, needed: str, find: Callable[[], str], *, required: bool = False) -> Finding:
    try:
        return Finding(what, needed, required, find(), "")
    except OpwrightError as error:
        return Finding(what, needed, required, "", str(error))


def _pytorch() -> str:
    torch = find_pytorch()
    built = f"CUDA {torch.cuda}" if torch.cuda else "CPU"
    return f"{torch.version}, {built} build, {torch.root}"


def _cxx() -> str:
    compiler = find_cxx()
    return f"{compiler.version}, {compiler.path}"


def _nvcc() -> str:
    compiler = find_nvcc()
    return f"{compiler.version}, {compiler.path}"


def _gpu() -> str:
    # Imported here: nothing else that doctor does needs the second that it costs.
    import torch

    if torch.cuda.is_available():
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    built = "this PyTorch is a CPU build" if torch.version.cuda is None else "the driver shows none"
    msg = f"no GPU can be used: {built}. CUDA sources still compile here"
    raise ToolchainError(msg)


def _package(name: str) -> str:
    return find_package(name).version


def _of_the_host(name: str) -> str:
    try:
        return _package(name)
    except ToolchainError as error:
        msg = f"{name}'s development files: install the package {OF_THE_HOST[name]}"
        raise ToolchainError(msg) from error


def _program(name: str) -> str:
    if found := shutil.which(name):
        return found
    msg = f"{name} is not on the PATH: install the package {name}"
    raise ToolchainError(msg)


def _cache() -> str:
    cache = Cache()
    return f"{cache.root}, {cache.size() / 2**20:.0f} MiB"


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "what", "found, or how to get it", "needed for"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        mark = "[green]ok[/]" if finding.found else "[red]missing[/]" if finding.required else "[yellow]none[/]"
        table.add_row(mark, finding.what, finding.found or finding.advice, finding.needed)
    return table
