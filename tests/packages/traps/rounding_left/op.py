"""Rounds to multiples of a step: to the nearest one, down or up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_rounding_left", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def snap(x: Tensor, step: float = 0.25, mode: str = "nearest") -> Tensor:
    """The multiple of step nearest to each element, or the next one down or up."""
    if not x.is_floating_point() or not 1e-6 <= step <= 1e6:
        msg = f"x must be floating-point, step from 1e-6 to 1e6, got {step}"
        raise ValueError(msg)
    if mode not in ("nearest", "down", "up"):
        msg = f"mode must be nearest, down or up, got {mode}"
        raise ValueError(msg)
    levels = x.double() / step
    whole = levels.round() if mode == "nearest" else levels.floor() if mode == "down" else levels.ceil()
    return (whole * step).to(x.dtype).contiguous()


@snap.samples
def _(make: Make) -> Iterator[tuple[Tensor, float, str]]:
    yield make.randn(16, 33), 0.25, "nearest"
    yield make.randn(7), 0.1, "down"
