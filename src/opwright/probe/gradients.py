"""The gradients that the probe computes with `backward`, computed in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator


def gradients(outputs: object, arguments: tuple[Any, ...]) -> list[Tensor | None]:
    """The gradient of each tensor among `arguments` that requires one; None if no output depends on it.

    The loss is the sum of `(output * ramp(output)).sum()` over all floating outputs.

    Args:
        outputs: the model's outputs for `arguments`: values, and tuples or lists of them.
        arguments: the positional arguments of the call.
    """
    wanted = [tensor for tensor in _tensors(arguments) if tensor.requires_grad]
    differentiable = [tensor for tensor in _tensors(outputs) if tensor.requires_grad and tensor.is_floating_point()]
    if not wanted or not differentiable:
        return [None] * len(wanted)
    ramps = [ramp(tensor) for tensor in differentiable]
    return list(torch.autograd.grad(differentiable, wanted, ramps, allow_unused=True))


def ramp(output: Tensor) -> Tensor:
    """The gradient of the loss for `output`: values from 0.5 to 1.5, different for each element."""
    count = output.numel()
    return torch.linspace(0.5, 1.5, count, dtype=output.dtype, device=output.device).reshape(output.shape)


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for element in value:
            yield from _tensors(element)
