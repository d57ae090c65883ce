"""A causal convolution over a stream in chunks, whose state is the end of the previous chunk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_causal_state", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


def distinct(x: Tensor) -> bool:
    """Whether each element of a matrix has its own address."""
    (far, stride), (near, step) = sorted(zip(x.shape, x.stride(), strict=True), key=lambda d: -d[1])
    return x.numel() < 2 or ((near == 1 or step > 0) and (far == 1 or stride > (near - 1) * step))


@library.op(mutates=["state"])
def conv_step(chunk: Tensor, weight: Tensor, state: Tensor) -> Tensor:
    """Correlates each channel of state and chunk with its weights; stores the last samples of the stream in state."""
    channels, length = chunk.shape
    _channels, width = weight.shape
    if width == 0 or weight.shape[0] != channels or state.shape != (channels, width - 1):
        msg = "weight must be (channels, width) with width > 0, state (channels, width - 1)"
        raise ValueError(msg)
    if not distinct(state):
        msg = "state must not overlap itself"
        raise ValueError(msg)
    stream = torch.cat([state, chunk], 1)
    windows = stream.unfold(1, width, 1) if length > 0 else stream.new_empty(channels, 0, width)
    result = (windows.double() * weight[:, None].double()).sum(-1).to(chunk.dtype)
    state.copy_(stream[:, length:])
    return result.contiguous()


@conv_step.fake
def _(chunk: Tensor, weight: Tensor, state: Tensor) -> Tensor:
    return chunk.new_empty(chunk.shape)


@conv_step.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    yield make.randn(4, 16), make.randn(4, 4), make.randn(4, 3)
    yield make.randn(3, 9), make.randn(3, 3), make.randn(3, 2)
