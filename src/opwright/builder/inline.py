"""Writes source strings to files, following the rules of `torch.utils.cpp_extension.load_inline`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opwright.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.cache.cache import Cache

_INCLUDE = r"^[ \t]*#[ \t]*include[ \t]*[<\"]"
# PyTorch's full C++ API cannot be included with these.
_STABLE_INCLUDE = re.compile(rf"{_INCLUDE}(?:opwright/|torch/csrc/stable/|torch/headeronly/)", flags=re.MULTILINE)
_CPP_NAME = "main.cpp"
_CUDA_NAME = "cuda.cu"


def inline_sources(
    cache: Cache,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    *,
    implicit_headers: bool = True,
    torch_errors: bool = True,
    gil_not_used: bool = False,
) -> list[Path]:
    """Files that contain the given sources; the same files for the same text.

    Args:
        cache: the cache to write the files to.
        cpp_sources: C++; several strings are joined into one file.
        cuda_sources: CUDA; several strings are joined into one file.
        functions: names of functions to bind into a Python module, or names with their docstrings.
        implicit_headers: include PyTorch's headers, as torch does, except in sources of the stable ABI.
        torch_errors: translate PyTorch's errors and warnings from the functions into Python's.
        gil_not_used: let a free-threaded Python call the functions without its global lock.

    Raises:
        BuildError: there is nothing to build, or `functions` is neither a string, a list nor a dict.
    """
    cpp = _joined(cpp_sources)
    cuda = _joined(cuda_sources or [])
    if not cpp.strip() and not cuda.strip():
        msg = "there is no source: cpp_sources and cuda_sources are both empty"
        raise BuildError(msg)
    if functions is not None:
        cpp += _bindings(functions, torch_errors=torch_errors, gil_not_used=gil_not_used)
    if implicit_headers:
        cpp = _with_headers(cache, cpp, _CPP_NAME, ["torch/extension.h"])
        cuda = _with_headers(cache, cuda, _CUDA_NAME, ["torch/types.h", "cuda.h", "cuda_runtime.h"])
    files = [cache.keep_source(cpp, _CPP_NAME)] if cpp.strip() else []
    if cuda.strip():
        files.append(cache.keep_source(cuda, _CUDA_NAME))
    return files


def _joined(sources: str | Sequence[str]) -> str:
    parts = [sources] if isinstance(sources, str) else list(sources)
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts)


def _with_headers(cache: Cache, source: str, name: str, headers: list[str]) -> str:
    first = re.compile(rf"{_INCLUDE}{re.escape(headers[0])}[>\"]", flags=re.MULTILINE)
    if not source.strip() or _STABLE_INCLUDE.search(source) or first.search(source):
        return source
    # With #line, messages have the line numbers of the author's string, and a debugger shows a file with the same ones.
    authors = json.dumps(str(cache.keep_source(source, name)), ensure_ascii=False)
    return "".join(f"#include <{header}>\n" for header in headers) + f"#line 1 {authors}\n{source}"


def _bindings(functions: str | Sequence[str] | Mapping[str, str], *, torch_errors: bool, gil_not_used: bool) -> str:
    if not isinstance(functions, (str, Sequence, Mapping)):
        msg = f"functions={functions!r}: expected names, or a dict of names and their docstrings"
        raise BuildError(msg)
    names = [functions] if isinstance(functions, str) else functions
    described = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    lines = [
        f'    m.def("{name}", {f"torch::wrap_pybind_function({name})" if torch_errors else name}, R"doc({text})doc");\n'
        for name, text in described.items()
    ]
    option = ", pybind11::mod_gil_not_used()" if gil_not_used else ""
    return "".join([f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m{option}) {{\n", *lines, "}\n"])
