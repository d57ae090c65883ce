"""Operators that each fail in one runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("fails_in_a_runtime", sources=["cpu.cpp"])


def one_tensor(make: Make) -> Iterator[Tensor]:
    yield make.randn(4, 6)
    yield make.randn(5, 3)


@library.op
def longer_when_fake(x: Tensor) -> Tensor:
    """The fake kernel returns one more row."""
    return x * 2


@longer_when_fake.fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape[0] + 1, x.shape[1])


longer_when_fake.samples(one_tensor)


@library.op
def itself_when_fake(x: Tensor) -> Tensor:
    """The fake kernel returns its argument."""
    return x * 2


@itself_when_fake.fake
def _(x: Tensor) -> Tensor:
    return x


itself_when_fake.samples(one_tensor)


@library.op
def looks_at_numbers(x: Tensor) -> Tensor:
    """The reference, which is also the fake kernel, branches on a value of its argument."""
    return x * 2 if x[0, 0] > -100 else x


looks_at_numbers.samples(one_tensor)


@library.op
def difference(x: Tensor, y: Tensor) -> Tensor:
    """The vmap rule swaps the arguments."""
    return x - y


@difference.vmap
def _(info: Any, in_dims: Any, x: Tensor, y: Tensor) -> tuple[Tensor, int]:
    x, y = (one[None] if dim is None else one.movedim(dim, 0) for one, dim in zip((x, y), in_dims, strict=True))
    return difference(y, x), 0


@difference.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(4, 6), make.randn(4, 6)


@library.op
def first_again(x: Tensor) -> Tensor:
    """The kernel returns the result of the first call for all later calls with the same sizes."""
    return (x * 2).contiguous()


first_again.samples(one_tensor)


@library.op
def declines(x: Tensor, mode: str) -> Tensor:
    """The kernel supports only one of the two modes."""
    return (x * 2 if mode == "twice" else x * 3).contiguous()


@declines.samples
def _(make: Make) -> Iterator[tuple[Tensor, str]]:
    yield make.randn(4, 6), "twice"
    yield make.randn(4, 6), "thrice"


@library.op
def rounded(x: Tensor, dtype: torch.dtype = torch.int64) -> Tensor:
    """The default of `dtype` is one that AOTInductor cannot package."""
    return x.round().to(dtype)


rounded.samples(one_tensor)


@library.op
def of_one_size(x: Tensor) -> Tensor:
    """The reference converts a size to a plain number, which fixes it in an exported program."""
    return x * int(x.shape[0])


of_one_size.samples(one_tensor)


@library.op
def aborts_alone(x: Tensor) -> Tensor:
    """The kernel aborts a process without Python."""
    return (x * 2).contiguous()


@library.op
def raises_alone(x: Tensor) -> Tensor:
    """The kernel raises in a process without Python."""
    return (x * 2).contiguous()


@library.op
def zeros_alone(x: Tensor) -> Tensor:
    """Kernel and backward return zeros in a process without Python, if a gradient is requested."""
    return (x * 2).contiguous()


zeros_alone.backward()

for op in (aborts_alone, raises_alone, zeros_alone):
    op.samples(one_tensor)
