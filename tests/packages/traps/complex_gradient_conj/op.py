"""Products of complex numbers. The gradient of a factor is the incoming gradient times the other factor, which is not
conjugated."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_complex_gradient_conj", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """x * turn, for complex64 tensors of the same shape; the result is contiguous."""
    if x.shape != turn.shape or x.dtype != turn.dtype or not x.is_complex():
        msg = f"x and turn must be complex and of one shape and dtype, got {tuple(x.shape)} and {tuple(turn.shape)}"
        raise ValueError(msg)
    return (x * turn).contiguous()


@rotate.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    count = make.size(25)
    one = torch.float32
    x = torch.complex(make.randn(count, dtype=one), make.randn(count, dtype=one))
    yield x, torch.complex(make.randn(count, dtype=one), make.randn(count, dtype=one))
    other = torch.complex(make.randn(3, 4, dtype=one), make.randn(3, 4, dtype=one))
    yield other, other.flip(0)


rotate.backward()
