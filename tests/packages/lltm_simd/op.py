"""The vector operations of ops/lltm, with a named instruction set."""

from __future__ import annotations

import torch
from torch import Tensor

import opwright

library = opwright.Library("lltm_simd", sources=["cpu.cpp"], include_dirs=["../../../ops/lltm/cpu"])


@library.op
def elu(x: Tensor, instruction_set: str) -> Tensor:
    """The ELU of each element of a contiguous float32, float64 or bfloat16 vector."""
    return torch.nn.functional.elu(x)


@library.op
def round_trip(x: Tensor, instruction_set: str) -> Tensor:
    """Four columns, (rows, 4), through vectors and back."""
    return x.clone()


@library.op
def multiply(left: Tensor, right: Tensor, added_to: Tensor, adds: bool, instruction_set: str) -> Tensor:
    """The product of two row-major matrices, optionally added to a third. `right` is float32 if `left` is bfloat16."""
    product = left.to(right.dtype) @ right
    return (added_to + product if adds else product).to(added_to.dtype)


@library.op
def multiply_pairs(left: Tensor, right: Tensor, added_to: Tensor, adds: bool) -> Tensor:
    """The product of two bfloat16 matrices, optionally added to a float32 or bfloat16 matrix."""
    product = left.float() @ right.float()
    return (added_to + product if adds else product).to(added_to.dtype)


@library.op
def sum_of_rows(x: Tensor, instruction_set: str) -> Tensor:
    """The sum over the rows of a contiguous matrix."""
    return x.sum(0)


@library.op
def supports(instruction_set: str) -> bool:
    """Whether this processor supports the instruction set."""
    raise NotImplementedError
