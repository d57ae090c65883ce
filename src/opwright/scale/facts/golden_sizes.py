"""Reads the sizes of a bundle's goldens, without PyTorch and without executing anything in them."""

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
    """Replaces every object that a pickle would create, and keeps its constructor's arguments."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: object) -> None:
        """Discard the state, which contains no sizes."""


class _SizeReader(pickle.Unpickler):
    def find_class(self, _module: str, _name: str) -> Any:
        return _Stub

    def persistent_load(self, _pid: object) -> Any:
        return _Stub()


def golden_sizes(path: Path) -> tuple[list[Sizes], list[Sizes]]:
    """Read the sizes of the inputs and of the outputs in the archive at `path`.

    Raises:
        BundleError: the archive is not a golden.
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
        msg = f"{path} is not a golden as docs/reference/format.md describes it ({error}): ship the model again"
        raise BundleError(msg) from error


def _sizes(tensor: _Stub) -> Sizes:
    # PyTorch rebuilds a tensor from its storage, the offset in it, its sizes and its strides.
    return tuple(int(size) for size in tensor.arguments[2])
