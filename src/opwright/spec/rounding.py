"""How far rounding can move each element of a result: the oracle's results for arguments changed in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from opwright.spec import derive

# In addition to a draw that enlarges all magnitudes and one that reduces them.
_RANDOM_DRAWS = 4
# The relative size of the small draws. A smooth function's results change in proportion to its arguments; where they do
# not, the function jumps.
SMALL = 2.0**-10
# An accumulation of N terms one after the other loses about sqrt(N) / 4 times what rounding each term once loses.
_IN_SEQUENCE = 4.0
# Floating-point tensors of integers up to this magnitude are labels or masks.
_LARGEST_LABEL = 2

# Computes the flat results for arguments that a function has changed.
Evaluate = Callable[[Callable[[Any], Any]], Sequence[Any]]


@dataclass
class Nearby:
    """The oracle's results near the arguments of a call, computed when they are first needed.

    Stochastic arithmetic: the results of several draws, each with every floating-point number of the arguments moved by
    one unit in the last place, show how much of a difference rounding explains at each element.

    Attributes:
        evaluate: computes the flat results of the oracle for changed arguments.
        arguments: the arguments of the call.
        in_float64: whether the oracle computes in float64; otherwise it cannot see small draws.
    """

    evaluate: Evaluate
    arguments: Any
    in_float64: bool = True
    _drawn: dict[tuple[float, float], list[Sequence[Any]]] = field(default_factory=dict)

    @property
    def eps(self) -> float:
        """The coarsest relative precision among the floating-point arguments; that of float32 without any."""
        found = [torch.finfo(tensor.dtype).eps for tensor in derive.tensors(self.arguments) if _moves(tensor)]
        return max(found, default=torch.finfo(torch.float32).eps)

    def accumulation(self, numel: int) -> float:
        """How many times more than one rounding a sequential accumulation may lose, for a result of `numel` elements.

        The number of terms is unknown: at most the largest dimension, or the arguments' elements for each result.
        """
        tensors = [tensor for tensor in derive.tensors(self.arguments) if _moves(tensor)]
        terms = max((max((*tensor.shape, tensor.numel() // max(numel, 1))) for tensor in tensors), default=1)
        return max(1.0, math.sqrt(terms) / _IN_SEQUENCE)

    def leaf(self, at: int, eps: float, scale: float = 1.0) -> list[Tensor]:
        """The result of that number in every draw of relative size `eps * scale`."""
        key = (eps, scale)
        if key not in self._drawn:
            signs: list[int | None] = [1, -1, *[None] * _RANDOM_DRAWS]
            self._drawn[key] = [
                found for number, sign in enumerate(signs) if (found := self._draw(eps, scale, sign, number))
            ]
        found = [results[at] for results in self._drawn[key]]
        return [one if isinstance(one, Tensor) else torch.tensor([one]) for one in found if one is not None]

    def _draw(self, eps: float, scale: float, sign: int | None, number: int) -> Sequence[Any]:
        generator = torch.Generator().manual_seed(number)
        labels = _labels(self.arguments)
        moved: dict[tuple[Any, ...], Tensor] = {}

        def move(value: Any) -> Any:
            if isinstance(value, float):
                return value + scale * (_rounded(value, eps) - value)
            if not isinstance(value, Tensor) or not _moves(value) or (labels and _is_label(value)):
                return value
            # Arguments that are the same tensor stay the same.
            key = (value.data_ptr(), value.dtype, value.shape, value.stride(), value.is_conj())
            if key not in moved or value.numel() == 0:
                moved[key] = _moved(value, eps * scale, sign, generator, in_float64=self.in_float64)
            return moved[key]

        try:
            return list(self.evaluate(move))
        except Exception:  # noqa: BLE001  a reference may reject numbers that it accepted before
            return []


def _moves(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and (tensor.is_floating_point() or tensor.is_complex())


def _labels(arguments: Any) -> bool:
    """Whether tensors of small integers are labels among other numbers: the oracle may ask whether they equal 1."""
    return not all(_is_label(tensor) for tensor in derive.tensors(arguments) if _moves(tensor))


def _is_label(tensor: Tensor) -> bool:
    return not tensor.is_complex() and bool(((tensor == tensor.round()) & (tensor.abs() <= _LARGEST_LABEL)).all())


def _moved(tensor: Tensor, size: float, sign: int | None, generator: torch.Generator, *, in_float64: bool) -> Tensor:
    """`tensor` with every number but zero moved by the relative `size`, denormals by as much as the smallest normal."""
    wide: Tensor = tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)
    signs: Any = sign
    if sign is None:
        drawn = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.int8)
        signs = (2 * drawn - 1).to(wide.device, torch.float64)
    step = wide * size
    if not tensor.is_complex():
        least = torch.finfo(tensor.dtype).tiny * size
        step = step.where(step.abs() > least, wide.sign() * least)
    wide = wide + (signs * step).where(wide.isfinite(), 0.0)
    return wide.to(wide.dtype if in_float64 else tensor.dtype)


def _rounded(value: float, eps: float) -> float:
    """`value` in a precision, as a kernel keeps it whose parameters are not doubles."""
    if value == 0 or not math.isfinite(value):
        return value
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(2 * mantissa / eps) * eps / 2, exponent)
