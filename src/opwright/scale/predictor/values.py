"""Converts a Python value for a host: to the path of a file, or to the bytes of one."""

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
    """A path as a string, or the bytes of a file.

    Args:
        value: a path or URL; the bytes of a file; an array, a tensor or numbers, with or without the row dimension;
            or a mapping with `bytes` and `path`, which is how datasets store pictures.
        facts: the input that the value is for. Python numbers, which have no dtype, are converted to its dtype.

    Raises:
        ValueError: the value is none of these; the message describes it.
    """
    if isinstance(value, Mapping) and {"bytes", "path"} <= value.keys():
        value = value["path"] if value["bytes"] is None else value["bytes"]
    if type(value) is np.bytes_:
        msg = f"the input {facts.name} has NumPy's dtype S, which drops trailing zero bytes: use dtype=object"
        raise ValueError(msg)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return npy(_array(value, facts), facts)


def _array(value: Any, facts: InputFacts) -> np.ndarray[Any, Any]:
    if value is None or _is_nan(value, facts):
        msg = f"the input {facts.name} has no value: {_EXPECTED}"
        raise ValueError(msg)
    if hasattr(value, "detach"):  # a tensor, which may require a gradient or be on a GPU
        value = value.detach().cpu()
    try:
        if not hasattr(value, "__array__"):
            value = np.array(value, dtype=_own_dtype(value) or facts.dtype)
        array = np.asarray(value)
        if array.dtype.kind == "O":  # lists of lists, how pandas stores them
            array = np.array(array.tolist(), dtype=_own_dtype(array.tolist()) or facts.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        msg = f"the input {facts.name} has type {type(value).__name__}: {_EXPECTED} ({error})"
        raise ValueError(msg) from error
    if array.dtype.kind not in "biufc":
        msg = f"the input {facts.name} is an array of dtype {array.dtype}: {_EXPECTED}"
        raise ValueError(msg)
    return array


def _is_nan(value: object, facts: InputFacts) -> bool:
    """Whether it is pandas' mark of a missing value; for an input of single numbers, NaN is a number."""
    return isinstance(value, float) and math.isnan(value) and len(facts.dims) > 1


def _own_dtype(value: object) -> np.dtype[Any] | None:
    """The dtype of the first number in nested lists; None for a Python number."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    dtype = getattr(value, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind != "O" else None
