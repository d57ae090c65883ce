"""Detects which of PyTorch's two C++ interfaces sources use, from the headers that they include."""

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
# Python's headers, and those that include them.
_PYTHON = re.compile(r"Python\.h|(?:pybind11|nanobind)/.*|torch/(?:extension|python)\.h|torch/csrc/utils/pybind\.h")
_PYTHON_MODULE = re.compile(r"\b(?:PYBIND11_MODULE|TORCH_EXTENSION_NAME|PyInit_\w+|NB_MODULE)\b")
# Blocks for other systems: many sources define PyInit_ only for the Windows linker.
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(.*)$")
_ELSEWHERE = re.compile(r"\s*(?:defined\s*\(?\s*)?(?:_WIN32|_WIN64|WIN32|_MSC_VER|__APPLE__)\s*\)?\s*")


def abi_of(sources: Iterable[Path], include_dirs: Iterable[Path] = ()) -> Abi:
    """`"full"` if a source, or one of the author's headers that it includes, includes PyTorch's full C++ API.

    Args:
        sources: the C++ and CUDA files.
        include_dirs: the folders to search for the author's own headers.
    """
    return "full" if any(map(_FULL.fullmatch, included_names(sources, include_dirs))) else "stable"


def included_names(sources: Iterable[Path], include_dirs: Iterable[Path] = ()) -> set[str]:
    """The headers that sources or the author's own headers include, as written: `opwright/op.h`.

    Args:
        sources: the C++ and CUDA files.
        include_dirs: the folders to search for the author's own headers.
    """
    return {name for source in sources for name in _included(source, list(include_dirs), set())}


def includes_opwright(sources: Iterable[Path], include_dirs: Iterable[Path] = ()) -> bool:
    """Whether a source, or one of the author's headers that it includes, includes an opwright header.

    Args:
        sources: the C++ and CUDA files.
        include_dirs: the folders to search for the author's own headers.
    """
    return any(name.startswith("opwright/") for name in included_names(sources, include_dirs))


def makes_python_module(sources: Iterable[Path]) -> bool:
    """Whether a source seems to define a Python module on this system; only the built object is conclusive."""
    return any(_PYTHON_MODULE.search(_for_this_system(without_comments(source))) for source in sources)


def uses_python(sources: Iterable[Path], include_dirs: Iterable[Path] = ()) -> bool:
    """Whether a source, or one of the author's headers that it includes, includes Python's headers."""
    names = (name for source in sources for name in _included(source, list(include_dirs), set()))
    return any(_PYTHON.fullmatch(name) for name in names)


def authors_files(sources: Iterable[Path], include_dirs: Iterable[Path] = ()) -> list[Path]:
    """The sources, and the author's own headers that they include, directly or indirectly."""
    seen: set[Path] = set()
    for source in sources:
        for _ in _included(source, list(include_dirs), seen):
            pass
    return sorted(seen)


def without_comments(file: Path) -> str:
    """The text of a source without comments, which may mention headers that are not included."""
    text = file.read_text(errors="replace")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def _included(file: Path, include_dirs: list[Path], seen: set[Path]) -> Iterator[str]:
    if file in seen:
        return
    seen.add(file)
    for _, name in _INCLUDE.findall(without_comments(file)):
        yield name
        for folder in (file.parent, *include_dirs):
            header = folder / name
            if header.is_file():
                yield from _included(header.resolve(), include_dirs, seen)
                break


def _for_this_system(text: str) -> str:
    """`text` without blocks for other systems, such as `#ifdef _WIN32`."""
    kept = []
    blocks: list[bool] = []  # for each open conditional, whether its current branch is left out
    for line in text.splitlines():
        if (found := _CONDITIONAL.match(line)) is None:
            kept.append("" if any(blocks) else line)
        elif found[1] in {"if", "ifdef", "ifndef"}:
            blocks.append(found[1] != "ifndef" and _ELSEWHERE.fullmatch(found[2]) is not None)
        elif blocks and found[1] == "endif":
            blocks.pop()
        elif blocks:
            blocks[-1] = found[1] == "elif" and _ELSEWHERE.fullmatch(found[2]) is not None
    return "\n".join(kept)
