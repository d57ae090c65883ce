"""Operators with native backwards, one for each kind of argument, result and saved value of a backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("gradients", sources=["cpu.cpp"])


@library.op
def mul(x: Tensor, y: Tensor) -> Tensor:
    """The product of two tensors of the same shape."""
    return x * y


@mul.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(3, 4), make.randn(3, 4)


mul.backward()


@library.op(differentiable=())
def asked_of_mul_backward() -> int:
    """The gradients that the last `mul_backward` computed: 1 for x, 2 for y, 3 for both; 0 if it never ran."""
    return 0


@library.op
def affine(
    x: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    alpha: float,
    mode: str = "plus",
    shift: Optional[Sequence[int]] = None,
    flag: bool = False,
    dtype: Optional[torch.dtype] = None,
) -> Tensor:
    """`alpha * x * weight`, plus or minus `bias`, plus the sum of `shift`; negated for `flag`, then in `dtype`."""
    result = alpha * x * weight + sum(shift or ())
    if bias is not None:
        result = result + bias if mode == "plus" else result - bias
    return (-result if flag else result).to(dtype or x.dtype)


@affine.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5), make.randn(5), make.randn(5), 2.5
    yield make.randn(2, 3), make.randn(2, 3), None, -1.0
    yield make.randn(5), make.randn(5), make.randn(5), 0.5, "minus", [1, 2], True


affine.backward()


@library.op
def weighted_sum(terms: Sequence[Tensor], factor: Tensor) -> Tensor:
    """`factor * (1 * terms[0] + 2 * terms[1] + ...)`, for tensors of the same shape."""
    return sum(((at + 1) * term for at, term in enumerate(terms)), torch.zeros_like(factor)) * factor


@weighted_sum.samples
def _(make: Make) -> Iterator[Any]:
    yield [make.randn(4), make.randn(4), make.randn(4)], make.randn(4)
    yield [], make.randn(4)


weighted_sum.backward()


@library.op
def sum_of_given(terms: Sequence[Optional[Tensor]], first: Tensor) -> Tensor:
    """`first` plus the squares of those `terms` that are given."""
    return sum((term * term for term in terms if term is not None), first)


@sum_of_given.samples
def _(make: Make) -> Iterator[Any]:
    yield [make.randn(4), None, make.randn(4)], make.randn(4)


sum_of_given.backward()


@library.op
def sin_cos(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sine and the cosine."""
    return x.sin(), x.cos()


@sin_cos.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(7)


sin_cos.backward()


@library.op
def largest(x: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of a vector, and its index."""
    value, place = x.max(dim=0)
    return value, place


@largest.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(7)


@largest.backward(saves=("result_1", "x"))
def largest_backward(
    grad_0: Optional[Tensor],
    grad_1: Optional[Tensor],
    result_1: Tensor,
    x: Tensor,
) -> Tensor:
    """The gradient of `largest`: that of the first result, at the index in the second."""
    if grad_1 is not None:
        msg = "an integer result has no gradient"
        raise RuntimeError(msg)
    grad = torch.zeros_like(x) if grad_0 is None else torch.zeros_like(x) + grad_0
    return grad * (torch.arange(x.numel()) == result_1)


@library.op
def sigmoid(x: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return torch.sigmoid(x)


@sigmoid.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(7)


@sigmoid.backward(saves=("result",))
def sigmoid_backward(grad: Tensor, result: Tensor) -> Tensor:
    """The gradient of `sigmoid`, computed from its result."""
    return grad * result * (1 - result)


@library.op
def rows(table: Tensor, index: Tensor) -> Tensor:
    """The elements of the vector `table` at `index`."""
    return table[index]


@rows.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(6), make.randint(0, 6, 9)


rows.backward()


@library.op(vmap=True)
def cube(x: Tensor, *, factor: float = 1.0) -> Tensor:
    """`factor * x * x * x`."""
    return factor * x * x * x


@cube.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(7)
    yield make.call(make.randn(2, 3), factor=-2.0)


cube_backward = cube.backward()
cube_backward.backward()


@library.op
def gated(x: Tensor, y: Tensor) -> Tensor:
    """`tanh(x) * y`, for tensors of the same shape."""
    return x.tanh() * y


@gated.for_training
def gated_with_gate(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The result of `gated`, and `tanh(x)`, which its gradient needs."""
    gate = x.tanh()
    return gate * y, gate


@gated_with_gate.backward(saves=("y", "result_1"))
def gated_with_gate_backward(
    grad_0: Optional[Tensor],
    grad_1: Optional[Tensor],
    y: Tensor,
    result_1: Tensor,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor]:
    """The gradient of `gated_with_gate`. The gate only receives a gradient in a second derivative."""
    to_gate = torch.zeros_like(y)
    to_gate = to_gate if grad_0 is None else to_gate + grad_0 * y
    to_gate = to_gate if grad_1 is None else to_gate + grad_1
    to_y = torch.zeros_like(y) if grad_0 is None else grad_0 * result_1
    to_x = to_gate * (1 - result_1 * result_1)
    return to_x if wanted[0] else None, to_y if wanted[1] else None  # type: ignore[return-value]  # None: not requested


@library.op
def gates_made() -> int:
    """The number of calls of `gated_with_gate` since the last call of this operator."""
    return 0


@gated.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(3, 4), make.randn(3, 4)


@library.op(mutates=("x",))
def add_into(x: Tensor, y: Tensor) -> None:
    """Adds `y` to `x` in place."""
    x.add_(y)


@add_into.samples
def _(make: Make) -> Iterator[Any]:
    yield make.randn(7), make.randn(7)
