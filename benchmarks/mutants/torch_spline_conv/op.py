"""The CPU kernels of torch-spline-conv 1.2.2 for spline bases, csrc/cpu/basis_cpu.cpp, with added argument checks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

library = opwright.Library(
    "splines",
    sources=["kernels.cpp", "csrc/cpu/basis_cpu.cpp"],
    include_dirs=["csrc/cpu"],
)


def _b_spline(x: Tensor, degree: int) -> Tensor:
    """The uniform B-spline with knots 0, 1, ..., degree + 1, as a sum of truncated powers (Schoenberg 1946)."""
    powers = [(-1) ** j * math.comb(degree + 1, j) * (x - j).clamp(min=0) ** degree for j in range(degree + 1)]
    total: Tensor = sum(powers[1:], powers[0])
    return total / math.factorial(degree)


@library.op(differentiable=("pseudo",))
def spline_basis(pseudo: Tensor, kernel_size: Tensor, is_open_spline: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    """The products of B-splines at points, and the index of the weight for each product.

    Args:
        pseudo: (E, D), each coordinate in [0, 1].
        kernel_size: (D), int64, the number of weights along each axis.
        is_open_spline: (D), uint8, 1 for an axis whose splines do not wrap around.
        degree: 1, 2 or 3.

    Returns:
        The products, (E, S), with S = (degree + 1) ** D, and the indices, (E, S), int64.
    """
    if pseudo.dim() != 2 or kernel_size.shape != pseudo.shape[1:] or is_open_spline.shape != pseudo.shape[1:]:
        raise ValueError("pseudo must be (E, D), kernel_size and is_open_spline (D)")
    if degree not in (1, 2, 3) or kernel_size.dtype != torch.int64 or is_open_spline.dtype != torch.uint8:
        raise ValueError("degree must be 1, 2 or 3, kernel_size int64, is_open_spline uint8")
    scaled = pseudo * (kernel_size - degree * is_open_spline).to(pseudo.dtype)
    whole = scaled.detach().floor()
    basis = pseudo.new_ones(len(pseudo), 1)
    number = torch.zeros(len(pseudo), 1, dtype=torch.int64)
    step = torch.ones((), dtype=torch.int64)
    digits = torch.arange(degree + 1)
    for axis in range(pseudo.shape[1]):
        along = _b_spline((scaled - whole)[:, axis, None] + (degree - digits).to(pseudo.dtype), degree)
        at = (whole[:, axis, None].long() + digits) % kernel_size[axis]
        # The digit of the first axis changes fastest.
        basis = (along[:, :, None] * basis[:, None]).flatten(1)
        number = (step * at[:, :, None] + number[:, None]).flatten(1)
        step = step * kernel_size[axis]
    return basis, number


spline_basis.backward()


@spline_basis.samples(dtypes=(torch.float64, torch.bfloat16))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    points = make.size(5)
    for degree in (1, 2, 3):
        yield _sixteenths(make, points, 2), torch.tensor([5, 4]), torch.tensor([1, 0], dtype=torch.uint8), degree
    yield _sixteenths(make, points, 1), torch.tensor([6]), torch.tensor([1], dtype=torch.uint8), 3
    yield _sixteenths(make, points, 3), torch.tensor([4, 2, 3]), torch.tensor([0, 1, 1], dtype=torch.uint8), 1


def _sixteenths(make: opwright.Make, *shape: int) -> Tensor:
    return (make.rand(*shape) * 16).round() / 16


@spline_basis.domain
def _(pseudo: Tensor, kernel_size: Tensor, is_open_spline: Tensor, degree: int) -> bool:
    """Points in the unit cube with a few axes, and splines that fit on their axis."""
    if pseudo.shape[-1] > 4 or not ((kernel_size > 0) & (kernel_size < 100) & (is_open_spline <= 1)).all():
        return False
    splines = kernel_size - degree * is_open_spline
    # The package computes a fraction v as 1 - v - 1 + 2 * v, which has few correct digits for small v.
    fraction = (pseudo * splines.to(pseudo.dtype)).frac()
    distinct = (fraction == 0) | (fraction >= 1 / 16)
    return bool((splines > 0).all() and ((pseudo >= 0) & (pseudo <= 1) & distinct).all())
