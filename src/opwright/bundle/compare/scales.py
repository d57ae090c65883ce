"""The scale of each element of a model's outputs: the magnitude that its rounding error is relative to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from opwright.bundle.compare.outputs import flat
from opwright.spec.rounding import Nearby

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Draws perturb every number by this many units in the last place: more than the draws' own rounding errors.
_UNITS = 8.0
# The smallest scale of an element, in units of its dtype's smallest normal number: engines may flush smaller ones to 0.
_NORMALS = 2.0**16


def scales_of(model: Callable[..., Any], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """For each output a float32 tensor of its shape.

    The scale of an element is its magnitude, or more if it is the result of cancellation: how far the element moves
    when every input and every intermediate result moves by a unit in the last place, divided by the relative size of
    that unit. It is at most the largest magnitude in the tensor, which is also used if the model rejects moved inputs.
    """
    state = [(buffer, buffer.clone()) for buffer in model.buffers()] if isinstance(model, nn.Module) else []

    def evaluate(change: Callable[[Any], Any]) -> Sequence[Tensor]:
        with torch.no_grad():
            return flat(model(*map(change, inputs)))

    nearby = Nearby(evaluate, list(inputs), in_float64=False)
    try:
        return tuple(_scale(output, nearby, at) for at, output in enumerate(outputs))
    finally:
        for buffer, before in state:  # a draw may have changed them
            with torch.no_grad():
                buffer.copy_(before)


def _scale(output: Tensor, nearby: Nearby, at: int) -> Tensor:
    wide = torch.complex128 if output.is_complex() else torch.float64
    golden = output.to(wide)
    magnitude = golden.abs().nan_to_num(0.0, 0.0, 0.0)
    largest = magnitude.max() if magnitude.numel() else magnitude.new_zeros(())
    is_rounded = output.is_floating_point() or output.is_complex()
    info = torch.finfo(output.dtype if is_rounded else torch.float32)
    draws = [draw.cpu().to(wide) for draw in nearby.leaf(at, info.eps, _UNITS) if draw.shape == output.shape]
    if not draws:
        return largest.expand(output.shape).float().contiguous()
    moved = torch.stack([(draw - golden).abs() for draw in draws]).nan_to_num(0.0, 0.0, 0.0).amax(0)
    scale = torch.maximum(magnitude, moved / (_UNITS * info.eps)).clamp_min(_NORMALS * info.tiny)
    return torch.minimum(scale, largest).float()
