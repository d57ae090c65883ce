"""Temporarily replaces the contents of the tensors of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opwright.checker.cases.case import is_far
from opwright.checker.cases.variation import tensors
from opwright.spec import derive

if TYPE_CHECKING:
    from torch import Tensor

# Halving changes a sum, which moving its terms does not. Halves also stay in the range of the original values.
_FACTOR = 0.5


class MemoryContents:
    """The current contents of the tensors of a call.

    Args:
        arguments: the arguments of a call, by name. Tensors whose elements share memory keep their contents.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        there = [tensor.detach() for _, tensor in tensors(arguments) if _is_writable(tensor)]
        # Integers may be indices, whose order matters, so they are moved only if the call has no other tensors.
        changed = [tensor for tensor in there if derive.has_gradient(tensor)] or there
        self._own = [(tensor, tensor.clone(), any(tensor is one for one in changed)) for tensor in there]

    def restore(self) -> None:
        """Restore the contents."""
        for tensor, own, _ in self._own:
            tensor.copy_(own)

    def move(self, by: int) -> None:
        """Replace the contents by the same values moved by `by` places, and floating-point ones halved `by` times."""
        for tensor, own, is_changed in self._own:
            tensor.copy_(_moved(own, by) if is_changed else own)


def _moved(tensor: Tensor, by: int) -> Tensor:
    rolled = tensor.flatten().roll(by).view(tensor.shape)
    return rolled * _FACTOR**by if derive.has_gradient(tensor) else rolled


def _is_writable(tensor: Tensor) -> bool:
    """Whether each element has its own memory, which PyTorch can write to."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    is_expanded = any(size > 1 and not stride for size, stride in pairs)
    return not (tensor.is_meta or is_far(tensor) or is_expanded)
