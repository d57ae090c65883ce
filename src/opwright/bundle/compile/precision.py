"""Runs a model in bfloat16 while its inputs and outputs keep their dtypes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from opwright.bundle.compare.outputs import flat

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.bundle.compile.compilation import Compilation

_IMAGES = 4  # the number of dimensions of a 2-D convolution's weight


class InBfloat16(nn.Module):
    """A model that computes in bfloat16 where autocast expects little loss.

    Its weights stay as they are; freezing casts those that are used in bfloat16. Model inputs that reach a custom
    operator unchanged keep their dtype.

    Args:
        model: the model.
        dtypes: the dtypes of its outputs.
        device: the device that it runs on.
    """

    def __init__(self, model: Callable[..., Any], dtypes: tuple[torch.dtype, ...], device: str) -> None:
        super().__init__()
        self.model = model
        self.dtypes = dtypes
        self.device = device

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs, in their own dtypes."""
        # Disable the cache: in a trace, a cached tensor becomes a constant.
        with torch.autocast(self.device, torch.bfloat16, cache_enabled=False):
            outputs = flat(self.model(*inputs))
        return tuple(output.to(dtype) for output, dtype in zip(outputs, self.dtypes, strict=True))


def channels_last(model: nn.Module) -> nn.Module:
    """A copy of a model whose convolution weights have the layout that is fastest on a CPU."""
    copied = copy.deepcopy(model)
    for parameter in copied.parameters():
        if parameter.dim() == _IMAGES:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return copied


def for_bfloat16(model: Any, work: Compilation) -> nn.Module:
    """`model` computing in bfloat16, after a comparison with its goldens.

    Raises:
        BundleError: the model fails in bfloat16, or its results are too far from those in float32.
    """
    work.progress.step("bfloat16")
    dtypes = tuple(output.dtype for output in work.comparator.goldens[0].outputs)
    inside = InBfloat16(channels_last(model), dtypes, work.device).eval()
    work.comparator.compare("bfloat16", inside, advice="Ship it with --precision float32")
    return inside
