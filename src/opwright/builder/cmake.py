"""Writes the sources and flags of an operator library to a file of variables for CMake to include.

`opwright/cmake/opwrightConfig.cmake` runs this when CMake configures a project:

    python -m opwright.builder.cmake where
    python -m opwright.builder.cmake folder  OUTPUT --name TARGET ops/my_ops
    python -m opwright.builder.cmake sources OUTPUT --name TARGET --package opencv4 a.cpp b.cu

and this after CMake has linked a library whose sources include Python's headers:
    python -m opwright.builder.cmake inspect LIBRARY OBJECT...
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder import ninja
from opwright.builder.files_read import python_files
from opwright.builder.plan import Plan, plan_library, plan_sources
from opwright.builder.python_use import check_without_python
from opwright.builder.recipes import compose
from opwright.cache.cache import Cache
from opwright.errors import OpwrightError
from opwright.spec import library_at
from opwright.toolchain import flags
from opwright.toolchain.compiler import find_cxx, find_nvcc
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FILE_NAME = "library.cmake"


def cmake_prefix_path() -> str:
    """The folder to pass to CMake in `-DCMAKE_PREFIX_PATH`, in which `find_package(opwright)` finds opwright."""
    return str(Path(__file__).resolve().parents[1] / "cmake")


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer one query from CMake, and return the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.question == "where":
            # PyTorch's folder is also the prefix in which CMake finds its package.
            found = [cmake_prefix_path(), str(find_pytorch().root), sys.executable]
            sys.stdout.write(f"{_listed(found)}\n")
        elif asked.question == "inspect":
            check_without_python(asked.library, asked.objects)
        else:
            _write(asked.output / FILE_NAME, variables(*_plan(asked)))
    except OpwrightError as error:
        sys.stderr.write(f"{error}\n")  # CMake reports it as its own error
        return error.exit_code
    return 0


def variables(plan: Plan, depends: Iterable[Path] = ()) -> dict[str, list[str]]:
    """The variables from which `opwright_add_library` builds `plan`.

    Args:
        plan: the library.
        depends: the files whose changes make CMake configure again.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
    """
    recipes = compose(plan)
    nvcc = find_nvcc() if plan.cuda else None
    # CMake chooses the compilers, opwright the flags.
    before_cxx_flags = len(find_cxx().command)
    before_cuda_flags = len([*nvcc.command, "-ccbin"]) if nvcc else 0
    # The author's units first: opwright's own sources use the same flags, or their own if all others are CUDA.
    own = recipes.units_of(plan)
    units = ninja.accepted([*own, *(unit for unit in recipes.units if unit not in own)])
    cxx = [unit.command[before_cxx_flags:] for unit in units if unit.source.suffix != ".cu"]
    cuda = [unit.command[before_cuda_flags:] for unit in units if unit.source.suffix == ".cu"]
    link = recipes.link_flags
    return {
        "opwright_abi": [plan.abi],
        "opwright_sources": [str(unit.source) for unit in recipes.units],
        "opwright_depends": [str(path) for path in depends],
        "opwright_standard": [flags.STANDARD.removeprefix("-std=c++")],
        "opwright_cxx_options": [_options(words) for words in cxx[:1]],
        "opwright_cuda_options": [_options(words) for words in cuda[:1]],
        "opwright_link_item": [shlex.join(link)],
        "opwright_library_dirs": [flag.removeprefix("-L") for flag in link if flag.startswith("-L")],
        "opwright_uses_python": ["ON"] if plan.uses_python else [],
        "opwright_cuda_compiler": [str(nvcc.path)] if nvcc else [],
    }


def _options(words: Iterable[str]) -> str:
    # In one string, because CMake drops the second of two equal options, and -isystem occurs more than once. Without
    # the standard, because CMake appends its own to these flags: a property sets it.
    return f"SHELL:{shlex.join(word for word in words if word != flags.STANDARD)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m opwright.builder.cmake", description=__doc__)
    questions = parser.add_subparsers(dest="question", required=True)
    questions.add_parser("where")
    folder = questions.add_parser("folder")
    sources = questions.add_parser("sources")
    inspect = questions.add_parser("inspect")
    inspect.add_argument("library", type=Path)
    inspect.add_argument("objects", nargs="*", type=Path)
    for question in (folder, sources):
        question.add_argument("output", type=Path)
        question.add_argument("--name", required=True)
        question.add_argument("--cuda", choices=("on", "off"))
    folder.add_argument("folder", type=Path)
    sources.add_argument("--namespace")
    sources.add_argument("--abi")
    sources.add_argument("--package", action="append", default=[])
    sources.add_argument("sources", nargs="+", type=Path)
    return parser


def _plan(asked: argparse.Namespace) -> tuple[Plan, list[Path]]:
    cuda = None if asked.cuda is None else asked.cuda == "on"
    if asked.question == "folder":
        library = library_at(asked.folder)
        return plan_library(library, Cache(asked.output), cuda=cuda), python_files(library)
    plan = plan_sources(
        asked.namespace or asked.name,
        asked.sources,
        abi=asked.abi,
        product="operators",
        cuda=cuda,
        packages=asked.package,
    )
    return plan, []


def _write(path: Path, values: Mapping[str, list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"set({name} {_quoted(_listed(value))})\n" for name, value in values.items()))


def _listed(values: Iterable[str]) -> str:
    return ";".join(value.replace(";", r"\;") for value in values)


def _quoted(text: str) -> str:
    # CMake's bracket arguments are literal up to a bracket with the same number of equals signs.
    longest = max((len(found) for found in re.findall(r"\](=*)", text)), default=0)
    equals = "=" * (longest + 1)
    return f"[{equals}[{text}]{equals}]"


if __name__ == "__main__":
    sys.exit(main())
