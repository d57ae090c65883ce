"""Reads the sizes of a bundle's goldens, without PyTorch and without executing anything of them."""

from __future__ import annotations

import pickle
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from opwright.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path

Sizes = tuple[int, ...]


class _Stub:
    """Stands for whatever a pickle would make, and keeps the arguments that it would be made from."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: object) -> None:
        """Drop the state: it says nothing of sizes."""


class _SizeReader(pickle.Unpickler):
    def find_class(self, _module: str, _name: str) -> Any:
        return _Stub

    def persistent_load(self, _pid: object) -> Any:
        return _Stub()


def golden_sizes(path: Path) -> tuple[list[Sizes], list[Sizes]]:
    """The sizes of the inputs and those of the outputs in the archive at `path`.

    Raises:
        BundleError: it is not a golden.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(name) as file:
                inputs, outputs, _ = _SizeReader(file).load()
        return [_sizes(tensor) for tensor in inputs], [_sizes(tensor) for tensor in outputs]
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
        pickle.UnpicklingError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        msg = f"{path} is not a golden as docs/format.md describes it ({error}): ship the model again"
        raise BundleError(msg) from error


def _sizes(tensor: _Stub) -> Sizes:
    # PyTorch rebuilds a tensor from its storage, the offset in it, its sizes and its strides.
    return tuple(int(size) for size in tensor.arguments[2])
