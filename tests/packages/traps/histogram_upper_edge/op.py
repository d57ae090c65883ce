"""Histograms. A number equal to the upper end belongs to the last bin, but is dropped."""

import math
import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_histogram_upper_edge", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])
MOST_BINS = 1 << 20


@library.op(differentiable=())
def histogram(x: Tensor, bins: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    """The number of elements of `x` in each of `bins` equal parts of [low, high]; the last part includes `high`.

    Elements outside this range and NaN are not counted.

    Args:
        x: float32, any shape.
        bins: from 1 to 2^20.
        low: finite.
        high: finite, above `low`.

    Returns:
        (bins,), int64.
    """
    if x.dtype not in (torch.float32, torch.float64):
        msg = f"x must be floating, got {x.dtype}"
        raise ValueError(msg)
    if not 1 <= bins <= MOST_BINS or not low < high or not math.isfinite(high - low):
        msg = f"bins must be 1 to {MOST_BINS}, and low below high, both finite, got {bins}, {low} and {high}"
        raise ValueError(msg)
    numbers = x.double().reshape(-1)
    inside = (numbers >= low) & (numbers <= high)
    place = ((numbers - low) / (high - low) * bins).clamp(0, bins - 1)
    index = torch.where(inside, place, bins).long()
    counts = torch.zeros(bins + 1, dtype=torch.int64, device=x.device)
    return counts.scatter_add(0, index, torch.ones_like(index))[:bins].clone()


@histogram.samples
def _(make: opwright.Make) -> Iterator[object]:
    count = make.size(200)
    yield make.rand(count), 10
    yield make.call(make.randn(8, 25), 7, low=-2.0, high=2.5)
