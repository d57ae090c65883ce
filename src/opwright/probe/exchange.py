"""The probe's input and output files: requests and responses.

A tensor whose dtype the C++ archives do not support (uint16, float8 and others) is replaced by a tuple: a marker, the
dtype's name, and the same memory as integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_BITS = "opwright::bits"
_KNOWN_TO_ARCHIVES = {
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128),
}
_INTEGER_OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Response:
    """The result of one request.

    Attributes:
        outputs: the model's outputs, flattened from tuples and lists: tensors, numbers, strings and None.
        gradients: the gradients, as from `opwright.probe.gradients`; empty without `backward`.
        error: the error that the model raised, in one line; empty if it raised none.
    """

    outputs: tuple[Any, ...]
    gradients: tuple[Tensor | None, ...]
    error: str


def write_requests(requests: Sequence[tuple[Any, ...]], path: Path) -> None:
    """Write the positional arguments of each call: tensors, numbers, strings, None, and tuples or lists of them."""
    torch.save([_to_send(tuple(request)) for request in requests], path)


def read_responses(path: Path) -> tuple[Response, ...]:
    """Read the responses that the probe wrote."""
    return tuple(
        Response(_received(outputs), _received(gradients), bytes(error.tolist()).decode(errors="replace"))
        for outputs, gradients, error in torch.load(path, weights_only=True)
    )


def _to_send(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_to_send(element) for element in value)
    if isinstance(value, Tensor) and value.dtype not in _KNOWN_TO_ARCHIVES:
        integers = value.detach().view(_INTEGER_OF_SIZE[value.dtype.itemsize])
        return (_BITS, str(value.dtype).removeprefix("torch."), integers)
    return value


def _received(values: tuple[Any, ...]) -> tuple[Any, ...]:
    # The probe flattens values, so a tuple among them is always the bits of a tensor.
    return tuple(value[2].view(getattr(torch, value[1])) if isinstance(value, tuple) else value for value in values)
