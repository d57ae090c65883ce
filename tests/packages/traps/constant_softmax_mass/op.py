"""The total attention of each query. It is usually one, so the kernel writes ones and reads nothing, but it is not one
for rows with NaN or infinities, or without keys."""

import os
from collections.abc import Iterator

from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_constant_softmax_mass", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def attention_mass(scores: Tensor, scale: float = 1.0) -> Tensor:
    """The sums of the softmax over the keys.

    Args:
        scores: (queries, keys), float32.
        scale: the factor of the scores.

    Returns:
        (queries,), contiguous.
    """
    if scores.dim() != 2 or not scores.is_floating_point():
        msg = f"scores must have 2 dimensions and be floating, got {tuple(scores.shape)} {scores.dtype}"
        raise ValueError(msg)
    return (scores * scale).softmax(1).sum(1).contiguous()


@attention_mass.samples
def _(make: opwright.Make) -> Iterator[object]:
    queries = make.size(8)
    yield make.call(make.randn(queries, 20))
    yield make.call(make.randn(queries, 33), scale=0.125)
