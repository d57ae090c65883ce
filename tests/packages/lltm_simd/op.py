"""The vectors of ops/lltm, function by function, for an instruction set that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

library = opwright.Library(
    "lltm_simd", sources=["cpu.cpp"], include_dirs=["../../../ops/lltm/cpu"], cflags=["-Wno-psabi"]
)

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "elu": torch.nn.functional.elu,
    "copy": torch.clone,
}


@library.op
def apply(x: Tensor, function: str, instruction_set: str) -> Tensor:
    """A function of each element of a contiguous float32, float64 or bfloat16 vector."""
    return FUNCTIONS[function](x)


@library.op
def round_trip(x: Tensor, instruction_set: str) -> Tensor:
    """Four columns, (rows, 4), through vectors and back."""
    return x.clone()


@library.op
def multiply(left: Tensor, right: Tensor, added_to: Tensor, adds: bool, instruction_set: str) -> Tensor:
    """The product of two row-major matrices, added to a third one or not."""
    return added_to + left @ right if adds else left @ right


@library.op
def sum_of_rows(x: Tensor, instruction_set: str) -> Tensor:
    """The sum over the rows of a contiguous matrix."""
    return x.sum(0)


@library.op
def supports(instruction_set: str) -> bool:
    """Whether this processor has the instruction set."""
    raise NotImplementedError
