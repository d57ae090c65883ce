"""One call of a model, with which every transformed model is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from opwright.storage.deferred import deferring_errors

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor


@dataclass(frozen=True)
class Golden:
    """One call.

    Attributes:
        inputs: a tensor for each input.
        outputs: the outputs that eager PyTorch computes for them.
        scales: for each output, the scale of each of its elements.
        what: a description of the call, for messages.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    scales: tuple[Tensor, ...]
    what: str

    def fresh(self) -> tuple[Tensor, ...]:
        """A copy of the inputs: a model may write to them."""
        return tuple(tensor.clone() for tensor in self.inputs)


def write_golden(golden: Golden, path: Path) -> None:
    """Write the archive that docs/reference/format.md describes; equal tensors produce identical bytes."""
    # Copy each tensor into its own memory, without a gradient: torch.save would write the whole storage of a view.
    tensors = tuple(tuple(plain(tensor) for tensor in part) for part in (golden.inputs, golden.outputs, golden.scales))
    with deferring_errors(path) as file:
        torch.save(tensors, file)


def plain(tensor: Tensor) -> Tensor:
    """A contiguous copy on the CPU, without gradients."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
