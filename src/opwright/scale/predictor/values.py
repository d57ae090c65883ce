"""What a host is asked for a value of Python: the path of a file, or the bytes that such a file would hold."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opwright.scale.inputs.tables import npy

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import InputFacts

_EXPECTED = "expected a path, the bytes of a file, or an array of numbers"


def content_of(value: object, facts: InputFacts) -> str | bytes:
    """A path as a text, or the bytes of a file.

    Args:
        value: a path or URL; the bytes of a file; an array, a tensor or numbers, with or without the dimension of rows;
            or a mapping with `bytes` and `path`, as datasets have pictures.
        facts: the input that it is for. Numbers of Python, which have no dtype, take its dtype.

    Raises:
        ValueError: it is none of these; the message says what it is.
    """
    if isinstance(value, Mapping) and {"bytes", "path"} <= value.keys():
        value = value["path"] if value["bytes"] is None else value["bytes"]
    if type(value) is np.bytes_:
        msg = f"the input {facts.name} is of NumPy's dtype S, which drops zeros at the end of bytes: take dtype=object"
        raise ValueError(msg)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return npy(_array(value, facts), facts)


def _array(value: Any, facts: InputFacts) -> np.ndarray[Any, Any]:
    if value is None or _is_nan(value, facts):
        msg = f"the input {facts.name} holds no value: {_EXPECTED}"
        raise ValueError(msg)
    if hasattr(value, "detach"):  # a tensor, which may need a gradient or lie on a GPU
        value = value.detach().cpu()
    try:
        if not hasattr(value, "__array__"):
            value = np.array(value, dtype=_own_dtype(value) or facts.dtype)
        array = np.asarray(value)
        if array.dtype.kind == "O":  # lists of lists, as pandas has them
            array = np.array(array.tolist(), dtype=_own_dtype(array.tolist()) or facts.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        msg = f"the input {facts.name} is of type {type(value).__name__}: {_EXPECTED} ({error})"
        raise ValueError(msg) from error
    if array.dtype.kind not in "biufc":
        msg = f"the input {facts.name} is an array of the dtype {array.dtype}: {_EXPECTED}"
        raise ValueError(msg)
    return array


def _is_nan(value: object, facts: InputFacts) -> bool:
    """Whether it is how pandas marks a value that is missing; a number is one only for an input of single numbers."""
    return isinstance(value, float) and math.isnan(value) and len(facts.dims) > 1


def _own_dtype(value: object) -> np.dtype[Any] | None:
    """The dtype of the first number in nested lists; None for a number of Python."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    dtype = getattr(value, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind != "O" else None
