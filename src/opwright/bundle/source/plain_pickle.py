"""Reads and writes pickles that contain only tensors and plain values."""

from __future__ import annotations

import io
import re
from typing import Any

import torch
from torch import Tensor, nn

from opwright.bundle.source.trees import WORD
from opwright.spec.difference import first_line

_GLOBAL = re.compile(r"GLOBAL ([A-Za-z0-9_.]{1,100})")
_REASON = re.compile(r"WeightsUnpickler error: ([^\n\x1b]{1,200})")
_PLAIN = (bool, int, float, complex, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


def read_plain(data: bytes) -> Any:
    """Read what `torch.save` wrote: tensors, numbers and words, in tuples, lists and dicts.

    Raises:
        ValueError: the data contains anything else.
    """
    try:
        held = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except Exception as error:
        msg = f"a part of it is pickled, and that part has more than tensors ({why_not_plain(error)})"
        raise ValueError(msg) from error
    _check(held)
    return held


def why_not_plain(error: Exception) -> str:
    """Why `torch.load` rejected a file with `weights_only`, without its hint on how to read the file regardless."""
    named = _GLOBAL.search(str(error))
    if named is not None:
        return f"it would call {named[1]}"
    reason = _REASON.search(str(error))
    return reason[1] if reason is not None else first_line(error)


def written(held: object) -> bytes:
    """`held` in the format of `torch.save`."""
    buffer = io.BytesIO()
    torch.save(held, buffer)
    return buffer.getvalue()


def _check(held: object) -> None:
    kind = type(held)
    if kind in {tuple, list}:
        for one in held:  # type: ignore[attr-defined]  # one of the two types
            _check(one)
    elif isinstance(held, dict):
        for key, value in held.items():
            _check(key)
            _check(value)
    elif kind not in {Tensor, nn.Parameter, *_PLAIN} and not (kind is str and WORD.fullmatch(str(held))):
        msg = f"a part of it is pickled, and that part has {str(held)!r:.60} (a {kind.__name__})"
        raise ValueError(msg)
