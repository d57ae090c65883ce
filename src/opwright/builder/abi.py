"""Detects which of PyTorch's two C++ interfaces sources use, from what they include."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from opwright.toolchain.flags import Abi

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', flags=re.MULTILINE)
# All of PyTorch's headers, except those with a stable binary interface.
_FULL = re.compile(
    r"(?:torch/(?!csrc/stable/|headeronly/|csrc/inductor/aoti_torch/(?:c|generated)/)|ATen/|c10/|pybind11/).*"
)
_PYTHON_MODULE = re.compile(r"\b(?:PYBIND11_MODULE|TORCH_EXTENSION_NAME|PyInit_\w+|NB_MODULE)\b")


def abi_of(sources: Iterable[Path], include_dirs: Iterable[Path] = ()) -> Abi:
    """`"full"` if a source, or a header of the author's that it includes, includes PyTorch's full C++ API.

    Args:
        sources: the C++ and CUDA files.
        include_dirs: the folders to search for the author's own headers.
    """
    names = (name for source in sources for name in _included(source, list(include_dirs), set()))
    return "full" if any(_FULL.fullmatch(name) for name in names) else "stable"


def makes_python_module(sources: Iterable[Path]) -> bool:
    """Whether a source binds a Python module, with pybind11 or by hand."""
    return any(_PYTHON_MODULE.search(_text(source)) for source in sources)


def authors_files(sources: Iterable[Path], include_dirs: Iterable[Path] = ()) -> list[Path]:
    """The sources, and the author's own headers that they include, directly or through others."""
    seen: set[Path] = set()
    for source in sources:
        for _ in _included(source, list(include_dirs), seen):
            pass
    return sorted(seen)


def _included(file: Path, include_dirs: list[Path], seen: set[Path]) -> Iterator[str]:
    if file in seen:
        return
    seen.add(file)
    for _, name in _INCLUDE.findall(_text(file)):
        yield name
        for folder in (file.parent, *include_dirs):
            header = folder / name
            if header.is_file():
                yield from _included(header.resolve(), include_dirs, seen)
                break


def _text(file: Path) -> str:
    # Without comments: a header that one mentions is not included.
    text = file.read_text(errors="replace")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
