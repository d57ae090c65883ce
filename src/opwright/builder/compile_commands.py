"""Writes the compilation database of an operator library, for clangd and other tools."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from opwright.builder.abi import authors_files
from opwright.builder.recipes import compose
from opwright.errors import SpecError
from opwright.toolchain.compiler import cuda_home, find_cxx, find_nvcc
from opwright.toolchain.flags import for_clang, include_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from opwright.builder.ninja import Unit
    from opwright.builder.plan import Plan

FILE_NAME = "compile_commands.json"
# The nvcc flags that describe the source. clang has other names for the rest, or no equivalent.
_IN_TWO_WORDS = ("-D", "-U", "-I", "-isystem", "-include")
_IN_ONE_WORD = re.compile(r"-(?:[DUI].+|isystem=.+|std=.+)")
_ARCHITECTURE = re.compile(r"-gencode=arch=compute_(\w+),")
_HEADER_KINDS = {".cu": "cuda", ".cuh": "cuda"}


def compile_commands(plan: Plan, folder: Path) -> str:
    """The compilation database of `plan`: JSON with an entry for each source, and for each of the author's headers.

    All entries use clang's flags, even for CUDA sources, because clangd does not support nvcc's. Nothing is compiled.

    Args:
        plan: the library.
        folder: the folder to which names in flags are relative.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
        SpecError: the library has no source.
    """
    units = compose(plan).units_of(plan)
    if not units:
        msg = f"{plan.name} has no C++ or CUDA source, so there is no compile command to write: add a source"
        raise SpecError(msg)
    entries = {}
    for unit in units:
        command = _in_clangs_words(unit)
        for file in authors_files([unit.source], plan.include_dirs):
            kind = [] if file == unit.source else ["-x", _HEADER_KINDS.get(file.suffix, "c++-header")]
            arguments = [*command, *kind, "-c", str(file)]
            entry = {"directory": str(folder), "file": str(file), "arguments": arguments}
            if file == unit.source or file not in entries:
                entries[file] = entry
    return json.dumps(list(entries.values()), indent=2) + "\n"


def is_from_opwright(database: Path) -> bool:
    """Whether `compile_commands` wrote the file, so that it can be replaced when the library changes."""
    try:
        entries = json.loads(database.read_text())
        headers = f"-I{include_path()}"
        return bool(entries) and all(headers in entry["arguments"] for entry in entries)  # CMake writes "command"
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _in_clangs_words(unit: Unit) -> list[str]:
    cxx = find_cxx()
    if unit.source.suffix != ".cu":
        return [cxx.host, *for_clang(unit.command[len(cxx.launcher) + 1 :])]
    nvcc = find_nvcc()
    words = unit.command[len(nvcc.command) :]
    architectures = [found[1] for word in words if (found := _ARCHITECTURE.match(word))]
    host = [word for passed in words if passed.startswith("-Xcompiler=") for word in passed.split("=", 1)[1].split(",")]
    return [
        "clang++",
        # Host code only: it also contains the kernels, and device code requires a clang as new as the toolkit.
        *("-x", "cuda", "--cuda-host-only", f"--cuda-path={cuda_home(nvcc)}", "-Wno-unknown-cuda-version"),
        *(f"--cuda-gpu-arch=sm_{architecture}" for architecture in architectures[:1]),
        *for_clang(host),
        *_of_the_source(words),
    ]


def _of_the_source(words: Sequence[str]) -> Iterator[str]:
    following = iter(words)
    for word in following:
        if word in _IN_TWO_WORDS:
            yield from (word, next(following, ""))
        elif _IN_ONE_WORD.fullmatch(word):
            yield word.replace("-isystem=", "-isystem")
