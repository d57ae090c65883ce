"""The CUDA source of ops/lltm as a separate library, compiled for the CPU by tests/packages/cuda_on_host."""

from __future__ import annotations

import contextlib
import ctypes
import re
from pathlib import Path
from typing import TYPE_CHECKING

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "ops" / "lltm"
HOST = ROOT / "tests" / "packages" / "cuda_on_host"
NAME = "lltm_on_host"


def write_library(folder: Path, *flags: str) -> Path:
    """Writes the op.py of ops/lltm, with the CUDA source for the CPU as its only source; returns its folder."""
    library = (
        f"library = opwright.Library({NAME!r}, sources=[{str(HOST / 'lltm.cpp')!r}], "
        f"include_dirs={[str(HOST), str(FOLDER)]!r}, "
        f"cflags={['-O1', f'-Dlltm={NAME}', '-Wno-unknown-pragmas', *flags]!r}, ldflags={list(flags)!r})\n"
    )
    text, count = re.subn(r"library = opwright\.Library\(.*?\)\n", library, (FOLDER / "op.py").read_text(), count=1)
    assert count == 1
    folder.mkdir(exist_ok=True)
    (folder / "op.py").write_text(text)
    return folder


class OnHost:
    """The library in a folder, built and loaded."""

    def __init__(self, folder: Path) -> None:
        self.loaded = opwright.open(folder)
        self._functions = ctypes.CDLL(str(self.loaded.path))

    def launches(self) -> int:
        """The number of kernels launched since the library was loaded."""
        return int(self._functions.launches())

    @contextlib.contextmanager
    def way(self, name: str) -> Iterator[None]:
        """Forces calls of any size to use the `small`, the `large` or, with one column of blocks, the `narrow` path."""
        self._functions.force_large(name != "small", name == "narrow")
        try:
            yield
        finally:
            self._functions.force_large(False, False)
