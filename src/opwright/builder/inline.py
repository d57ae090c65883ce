"""Writes source strings to files, with the rules of `torch.utils.cpp_extension.load_inline`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opwright.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opwright.builder.cache import Cache

_TORCH_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:torch|ATen|c10|opwright)/", flags=re.MULTILINE)
_CPP_NAME = "main.cpp"
_CUDA_NAME = "cuda.cu"


def inline_sources(
    cache: Cache,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    *,
    implicit_headers: bool = True,
) -> list[Path]:
    """Files that contain the given sources; the same files for the same text.

    Args:
        cache: the cache in which to write the files.
        cpp_sources: C++; several strings are joined into one file.
        cuda_sources: CUDA; several strings are joined into one file.
        functions: names of functions to bind into a Python module, or names with their docstrings.
        implicit_headers: include PyTorch's headers for sources that include none of them, as torch does.

    Raises:
        BuildError: there is nothing to build.
    """
    cpp = _joined(cpp_sources)
    cuda = _joined(cuda_sources or [])
    if not cpp.strip() and not cuda.strip():
        msg = "there is no source: cpp_sources and cuda_sources are both empty"
        raise BuildError(msg)
    if functions is not None:
        cpp += _bindings(functions)
    if implicit_headers:
        cpp = _with_headers(cpp, ["torch/extension.h"])
        cuda = _with_headers(cuda, ["torch/types.h", "cuda.h", "cuda_runtime.h"])
    files = [cache.keep_source(cpp, _CPP_NAME)] if cpp.strip() else []
    if cuda.strip():
        files.append(cache.keep_source(cuda, _CUDA_NAME))
    return files


def _joined(sources: str | Sequence[str]) -> str:
    parts = [sources] if isinstance(sources, str) else list(sources)
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts)


def _with_headers(source: str, headers: list[str]) -> str:
    if not source.strip() or _TORCH_INCLUDE.search(source):
        return source
    # With #line, the compiler's messages have the line numbers of the author's string.
    return "".join(f"#include <{header}>\n" for header in headers) + f"#line 1\n{source}"


def _bindings(functions: str | Sequence[str] | Mapping[str, str]) -> str:
    names = [functions] if isinstance(functions, str) else functions
    described = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    lines = [
        f'    m.def("{name}", torch::wrap_pybind_function({name}), R"doc({text})doc");\n'
        for name, text in described.items()
    ]
    return "".join(["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n", *lines, "}\n"])
