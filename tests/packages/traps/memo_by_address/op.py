"""A projection. The weights are repacked once and cached by address: after an optimizer step, which changes them in
place, the kernel uses the old ones."""

import os
from collections.abc import Iterator

from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_memo_by_address", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def project(x: Tensor, weight: Tensor) -> Tensor:
    """x @ weight.

    Args:
        x: (rows, features), float32.
        weight: (features, outputs), float32.

    Returns:
        (rows, outputs), contiguous.
    """
    if x.dim() != 2 or weight.dim() != 2:
        msg = f"x and weight must have 2 dimensions, got {tuple(x.shape)} and {tuple(weight.shape)}"
        raise ValueError(msg)
    return (x @ weight).contiguous()


@project.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    rows = make.size(6)
    yield make.randn(rows, 16), make.randn(16, 9)
    yield make.randn(rows, 5), make.randn(5, 12)
