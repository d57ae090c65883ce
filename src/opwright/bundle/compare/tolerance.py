"""How far an output lies from its golden, by the formula of docs/format.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opwright.spec.difference import described

if TYPE_CHECKING:
    from collections.abc import Sequence

# What computing in this precision costs a model of some depth, as a part of the largest magnitude.
TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2}


def difference(output: Tensor, golden: Tensor) -> float:
    """The largest difference, as a part of the golden's largest magnitude; infinite where nothing may differ.

    NaN is equal to NaN, and an infinity to itself. A golden of only zeros, NaN or infinities is equal to nothing else.
    """
    if output.shape != golden.shape or output.dtype != golden.dtype:
        return math.inf
    wide = torch.complex128 if golden.is_complex() else torch.float64
    one, other = output.detach().cpu().to(wide), golden.detach().cpu().to(wide)
    finite = one.isfinite() & other.isfinite()
    # Where one of the two is not finite, they have to be the same.
    if not bool((finite | (one == other) | (one.isnan() & other.isnan())).all()):
        return math.inf
    gaps = (one - other).abs()[finite]
    largest = float(gaps.max()) if gaps.numel() else 0.0
    if largest == 0.0:
        return 0.0
    magnitude = float(other[finite].abs().max())
    return largest / magnitude if magnitude else math.inf


def largest_difference(outputs: Sequence[Tensor], goldens: Sequence[Tensor]) -> float:
    """The largest difference of all outputs; infinite where their numbers differ."""
    if len(outputs) != len(goldens):
        return math.inf
    return max((difference(*pair) for pair in zip(outputs, goldens, strict=True)), default=0.0)


def why_infinite(outputs: Sequence[Tensor], goldens: Sequence[Tensor]) -> str:
    """What no tolerance covers, in words."""
    if len(outputs) != len(goldens):
        return f"{len(outputs)} outputs instead of {len(goldens)}"
    for at, (output, golden) in enumerate(zip(outputs, goldens, strict=True)):
        which = f"output {at}: " if len(goldens) > 1 else ""
        if output.shape != golden.shape or output.dtype != golden.dtype:
            return f"{which}{described(output)} instead of {described(golden)}"
        if math.isinf(difference(output, golden)):
            return f"{which}NaN, infinities or zeros are in other places"
    return ""


def figure(amount: float) -> str:
    """A difference for people."""
    return f"{amount:.2g}"
