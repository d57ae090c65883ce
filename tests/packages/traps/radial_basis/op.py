"""Radial basis functions whose described gradient detaches their values, so second derivatives are wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_radial_basis", sources=["cpu.cpp"])


@library.op(differentiable=("distance",))
def radial_basis(distance: Tensor, centers: Tensor, gamma: float) -> Tensor:
    """exp(-gamma (distance - center)^2) for each distance, (N) float32, and center, (K) float32: (N, K).

    gamma is positive and finite. The computation is in float64. Only the distances have a gradient.
    """
    if distance.dtype != torch.float32 or centers.dtype != torch.float32:
        msg = "distance and centers must be float32"
        raise TypeError(msg)
    if distance.dim() != 1 or centers.dim() != 1:
        msg = "distance and centers must have one dimension"
        raise ValueError(msg)
    if not 0 < gamma < float("inf"):
        msg = f"gamma must be positive and finite, got {gamma}"
        raise ValueError(msg)
    offset = distance.double()[:, None] - centers.detach().double()  # the centers are fixed
    return torch.exp(-gamma * (offset * offset)).to(torch.float32).contiguous()


@radial_basis.samples
def _(make: Make) -> Iterator[object]:
    yield make.rand(make.size(17)) * 5, make.rand(make.size(9)) * 5, 1.5
    yield make.rand(40), make.rand(4), 10.0


@radial_basis.backward(saves=("distance", "centers", "gamma"))
def radial_basis_backward(grad: Tensor, distance: Tensor, centers: Tensor, gamma: float) -> Tensor:
    """The gradient of the distances."""
    if distance.dtype != torch.float32 or centers.dtype != torch.float32 or grad.dtype != torch.float32:
        msg = "grad, distance and centers must be float32"
        raise TypeError(msg)
    if distance.dim() != 1 or centers.dim() != 1:
        msg = "distance and centers must have one dimension"
        raise ValueError(msg)
    if grad.dim() != 2 or grad.shape[0] != distance.shape[0] or grad.shape[1] != centers.shape[0]:
        msg = "grad must have the shape of the result"
        raise ValueError(msg)
    if not 0 < gamma < float("inf"):
        msg = f"gamma must be positive and finite, got {gamma}"
        raise ValueError(msg)
    offset = distance.double()[:, None] - centers.detach().double()  # the centers are fixed
    basis = torch.exp(-gamma * (offset * offset))
    if FAULTY:
        basis = basis.detach()  # computed in the forward pass
    slope = -gamma * (2 * offset) * basis
    return (grad.double() * slope).sum(1).to(torch.float32).contiguous()
