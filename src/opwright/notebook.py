"""`%%opwright`: builds and loads a C++ or CUDA cell of an IPython notebook."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from IPython.core.error import UsageError

from opwright.builder.symbols import defined_namespaces
from opwright.cache.cache import Cache
from opwright.errors import OpwrightError
from opwright.loader.jit import load_inline
from opwright.storage.draft import drafting, put

if TYPE_CHECKING:
    from types import ModuleType

    from IPython.core.interactiveshell import InteractiveShell

_DESCRIPTION = """\
Build the cell as C++ or CUDA, unless it is in the cache, and load it. If the cell defines a Python module, NAME
becomes the module; if it registers operators, NAME becomes their namespace, such as torch.ops.mine. Running a
cell again replaces its earlier result.
"""
_EXAMPLES = """\
Examples:
    %%opwright mine
    #include <opwright/op.h>
    int64_t twice(int64_t x) { return 2 * x; }
    OPWRIGHT_LIBRARY(mine, m) { m.def("twice(int x) -> int", OPWRIGHT_FN(twice)); }

    mine.twice(21)  # in another cell: torch.ops.mine.twice

    %%opwright plain --functions add --cflags "-O2 -march=native"
    at::Tensor add(at::Tensor x, at::Tensor y) { return x + y; }

    plain.add(x, y)
"""
# The name of the cell's file in `load_inline`.
_FILE = r"/inline/[0-9a-f]+/(?:main\.cpp|cuda\.cu)"


class _Parser(argparse.ArgumentParser):
    """A parser that raises an error that IPython shows in one line."""

    def error(self, message: str) -> NoReturn:
        msg = f"%%opwright: {message} (%%opwright? shows its options)"
        raise UsageError(msg)


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Add `%%opwright` to IPython: `%load_ext opwright` calls this.

    Args:
        ipython: the shell.
    """
    parser = _parser()

    def opwright(line: str, cell: str) -> None:
        _run(ipython, parser, line, cell)

    opwright.__doc__ = parser.format_help()  # the text that %%opwright? shows
    ipython.magics_manager.register_function(opwright, magic_kind="cell", magic_name="opwright")


def _parser() -> _Parser:
    parser = _Parser(
        prog="%%opwright",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", help="the variable, and the name of the module if the cell defines one")
    parser.add_argument("--functions", metavar="F,G", help="bind these C++ functions in a Python module")
    parser.add_argument("--cuda", action="store_true", help="compile the cell as CUDA")
    parser.add_argument("--cflags", metavar="FLAGS", help='flags for the compiler; quote several: "-O2 -DX=1"')
    parser.add_argument("--ldflags", metavar="FLAGS", help="flags for the linker")
    parser.add_argument("--include", metavar="DIR", action="append", help="a folder of headers; repeat for more")
    parser.add_argument("--package", metavar="NAME", action="append", help="a pkg-config package, such as opencv4")
    parser.add_argument(
        "--definitions", metavar="DIR", help="the folder of an op.py whose operators the cell implements"
    )
    parser.add_argument("--save", metavar="FILE", help="first write the cell to FILE, such as a source of that op.py")
    parser.add_argument("--abi", choices=("stable", "full"), help="detected from the included headers by default")
    parser.add_argument("--verbose", action="store_true", help="print each step")
    return parser


def _run(ipython: InteractiveShell, parser: argparse.ArgumentParser, line: str, cell: str) -> None:
    given = _parsed(parser, line)
    if given.save:
        _save(parser, Path(given.save), cell)
    try:
        ipython.user_ns.update(_built(given, cell))
    except OpwrightError as error:
        number = len(ipython.user_ns["In"]) - 1
        raise _of_cell(error, f"cell [{number}]") from None


def _parsed(parser: argparse.ArgumentParser, line: str) -> argparse.Namespace:
    try:
        given = parser.parse_args(shlex.split(line))
    except ValueError as error:  # an unpaired quote
        parser.error(str(error))
    if not given.name.isidentifier():
        parser.error(f"{given.name!r} cannot be the name of a variable: use a name such as my_ops")
    if given.cuda and given.functions:
        parser.error("--functions binds C++: bind CUDA with PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) in the cell")
    return given


def _save(parser: argparse.ArgumentParser, path: Path, cell: str) -> None:
    try:
        with drafting(path, "save") as draft:
            draft.write_text(cell, encoding="utf-8")
            put(draft, path)
    except OSError as error:
        parser.error(f"--save cannot write {path}: {error.strerror or error}")


def _built(given: argparse.Namespace, cell: str) -> dict[str, Any]:
    """The variables that the cell sets."""
    # The line with %%opwright is the first line of the cell.
    source = f"\n{cell}"
    flags = shlex.split(given.cflags or "")
    loaded = load_inline(
        given.name,
        "" if given.cuda else source,
        source if given.cuda else None,
        functions=[name.strip() for name in given.functions.split(",")] if given.functions else None,
        extra_cflags=flags,
        extra_cuda_cflags=flags,
        extra_ldflags=shlex.split(given.ldflags or ""),
        extra_include_paths=given.include,
        verbose=given.verbose,
        packages=given.package or (),
        abi=given.abi,
        definitions=given.definitions,
    )
    return {given.name: loaded} if not isinstance(loaded, str) else _namespaces(given.name, Path(loaded))


def _namespaces(name: str, library: Path) -> dict[str, ModuleType]:
    """The namespaces of operators in `library`: a single one as `name`, several under their own names."""
    defined = sorted(defined_namespaces(library))
    if len(defined) == 1:
        return {name: getattr(torch.ops, defined[0])}
    return {namespace: getattr(torch.ops, namespace) for namespace in defined}


def _of_cell(error: OpwrightError, cell: str) -> OpwrightError:
    """`error` with line numbers of the cell instead of the file, shown without a traceback."""
    file = re.escape(str(Cache().root)) + _FILE
    text = re.sub(rf"{file} does not compile:\n", "", str(error))
    text = re.sub(rf"{file}(?::(\d+)(?::\d+)?|\((\d+)\))", lambda at: f"{cell}, line {at[1] or at[2]}", text)
    text = re.sub(file, cell, text)
    # Drop the command line, which names the file; it is available as the attribute `command`.
    error.args = (text.partition("\nThe command ")[0],)
    vars(error)["_render_traceback_"] = lambda: [f"{type(error).__name__}: {error}"]
    return error.with_traceback(None)
