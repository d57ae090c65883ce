"""A linear recurrence and its gradient, compiled by numba: a loop over time that PyTorch would run step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

library = opwright.Library("numba_recurrence")

DTYPES = (torch.float32, torch.float64)


@library.op
def recurrence(decay: Tensor, x: Tensor) -> Tensor:
    """h[..., t] = decay[..., t] * h[..., t - 1] + x[..., t], from h = 0: two tensors (..., T) of the same shape."""
    state = torch.zeros_like(x[..., 0])
    states = []
    for gain, step in zip(decay.unbind(-1), x.unbind(-1), strict=True):
        state = gain * state + step
        states.append(state)
    return torch.stack(states, -1)


@recurrence.samples(dtypes=[torch.float64])
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.rand(4, 33), make.randn(4, 33)
    yield make.rand(2, 3, 7), make.randn(2, 3, 7)


@recurrence.sweep
def _(make: opwright.Make) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    for length in (64, 512):
        yield f"16 x {length}", (make.rand(16, length), make.randn(16, length))


@recurrence.backward(saves=("decay", "result"))
def recurrence_backward(grad: Tensor, decay: Tensor, result: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor]:
    """With g[t] = grad[t] + decay[t + 1] * g[t + 1], the gradients are g[t] * h[t - 1] of decay, and g[t] of x."""
    state = torch.zeros_like(grad[..., 0])
    states = []
    later = torch.cat([decay[..., 1:], torch.zeros_like(decay[..., :1])], -1)
    for gain, step in zip(later.unbind(-1)[::-1], grad.unbind(-1)[::-1], strict=True):
        state = step + gain * state
        states.append(state)
    return both(torch.stack(states[::-1], -1), result, wanted)


def both(found: Tensor, result: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor]:
    """The requested gradients, given g; None for the others."""
    before = torch.cat([torch.zeros_like(result[..., :1]), result[..., :-1]], -1)
    # None is an undefined tensor.
    return (found * before if wanted[0] else None, found if wanted[1] else None)  # type: ignore[return-value]


@numba.njit(nogil=True)
def forward_loop(decay: np.ndarray, x: np.ndarray, result: np.ndarray) -> None:
    """Write the states of each row of (N, T) arrays."""
    for row in range(x.shape[0]):
        state = x.dtype.type(0)
        for t in range(x.shape[1]):
            state = decay[row, t] * state + x[row, t]
            result[row, t] = state


@numba.njit(nogil=True)
def backward_loop(grad: np.ndarray, decay: np.ndarray, result: np.ndarray) -> None:
    """Write g of each row of (N, T) arrays, from the last step to the first."""
    length = grad.shape[1]
    for row in range(grad.shape[0]):
        state = grad.dtype.type(0)
        for t in range(length - 1, -1, -1):
            gain = decay[row, t + 1] if t + 1 < length else grad.dtype.type(0)
            state = grad[row, t] + gain * state
            result[row, t] = state


def rows(*tensors: Tensor) -> list[np.ndarray]:
    """Each tensor as an (N, T) array.

    Raises:
        ValueError: their shapes or dtypes differ or are not supported.
    """
    first = tensors[0]
    if first.dtype not in DTYPES or any(one.shape != first.shape or one.dtype != first.dtype for one in tensors):
        message = (
            f"recurrence got {', '.join(f'{one.dtype} {tuple(one.shape)}' for one in tensors)}; expected float32 or "
            "float64 tensors of the same shape and dtype"
        )
        raise ValueError(message)
    return [one.contiguous().view(-1, first.shape[-1]).numpy() for one in tensors]


@recurrence.kernel(device="cpu")
def _(decay: Tensor, x: Tensor) -> Tensor:
    result = torch.empty(x.shape, dtype=x.dtype)
    forward_loop(*rows(decay, x, result))
    return result


@recurrence_backward.kernel(device="cpu")
def _(grad: Tensor, decay: Tensor, result: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor]:
    found = torch.empty(grad.shape, dtype=grad.dtype)
    backward_loop(*rows(grad, decay, found))
    return both(found, result, wanted)
