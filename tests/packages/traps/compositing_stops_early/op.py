"""Front-to-back compositing along rays. The kernel stops a ray when less than 1/10000 of its light is left, however
bright the samples behind are."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_compositing_stops_early", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def composite(alpha: Tensor, color: Tensor) -> Tensor:
    """The light of each ray: the sum over s of color[s] alpha[s] (1 - alpha[0]) ... (1 - alpha[s - 1]).

    Args:
        alpha: (rays, steps), float32.
        color: the same shape and dtype.

    Returns:
        (rays,), contiguous.
    """
    if alpha.dim() != 2 or alpha.shape != color.shape or alpha.dtype != color.dtype:
        msg = f"alpha and color must both be (rays, steps), got {tuple(alpha.shape)} and {tuple(color.shape)}"
        raise ValueError(msg)
    left = torch.cat([alpha.new_ones(alpha.shape[0], 1), (1 - alpha).cumprod(1)], dim=1)[:, :-1]
    return (alpha * color * left).sum(1)


@composite.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    rays = make.size(16)
    yield make.rand(rays, 8) * 0.5, make.rand(rays, 8)
    yield make.rand(3, 5) * 0.5, make.rand(3, 5)
