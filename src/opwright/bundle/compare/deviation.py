"""How far an output deviates from its golden, by the formula of docs/reference/format.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opwright.spec.difference import described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.bundle.compare.golden import Golden

# The error of computing a deep model in this precision, relative to the scale of each element.
TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2}


def deviation(output: Tensor, golden: Tensor, scale: Tensor) -> float:
    """The largest difference of an element, relative to its scale; infinite if an element that must be equal differs.

    NaN is equal to NaN, and an infinity to itself. An element whose scale is 0 must be equal.
    """
    if output.shape != golden.shape or output.dtype != golden.dtype:
        return math.inf
    wide = torch.complex128 if golden.is_complex() else torch.float64
    one, other = output.detach().cpu().to(wide), golden.detach().cpu().to(wide)
    is_same = (one == other) | (one.isnan() & other.isnan())
    gaps = (one - other).abs()[~is_same]
    if not gaps.numel():
        return 0.0
    # If either element is not finite, the two must be the same.
    return float((gaps / scale.double()[~is_same]).nan_to_num(math.inf, math.inf).max())


def deviations(outputs: Sequence[Tensor], golden: Golden) -> list[float]:
    """How far each output of a call deviates; infinite if the number of outputs differs."""
    if len(outputs) != len(golden.outputs):
        return [math.inf] * len(golden.outputs)
    return [deviation(*trio) for trio in zip(outputs, golden.outputs, golden.scales, strict=True)]


def why_infinite(outputs: Sequence[Tensor], golden: Golden) -> str:
    """Describes a deviation that no tolerance covers."""
    if len(outputs) != len(golden.outputs):
        return f"{len(outputs)} outputs instead of {len(golden.outputs)}"
    for at, (output, kept, found) in enumerate(zip(outputs, golden.outputs, deviations(outputs, golden), strict=True)):
        which = f"output {at}: " if len(outputs) > 1 else ""
        if output.shape != kept.shape or output.dtype != kept.dtype:
            return f"{which}{described(output)} instead of {described(kept)}"
        if math.isinf(found):
            return f"{which}NaNs, infinities or zeros are at different positions"
    return ""


def figure(amount: float) -> str:
    """A deviation as text."""
    return f"{amount:.2g}"
