"""Swish with a native gradient. The description of that gradient detaches the sigmoid, so second derivatives, which a
gradient penalty needs, are wrong."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_backward_not_differentiable", sources=["cpu.cpp"])


@library.op
def swish(x: Tensor) -> Tensor:
    """x * sigmoid(x), float32, of any shape; the result is contiguous."""
    if not x.is_floating_point():
        msg = f"x must be floating, got {x.dtype}"
        raise ValueError(msg)
    return (x * torch.sigmoid(x)).contiguous()


@swish.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(8), 15),)
    yield (make.randn(3),)


@swish.backward(saves=("x",))
def swish_backward(grad: Tensor, x: Tensor) -> Tensor:
    """The gradient of `swish`."""
    sigmoid = torch.sigmoid(x)
    if FAULTY:
        sigmoid = sigmoid.detach()
    return torch.empty_like(x).copy_(grad * (sigmoid + x * sigmoid * (1 - sigmoid)))
