"""A gain per frequency, whose native gradient lacks the conjugate, which only affects complex gains."""

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
library = opwright.Library("trap_spectral_gain", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def spectral_gain(spectrum: Tensor, gain: Tensor) -> Tensor:
    """Multiply a spectrum, (..., F) complex64, by a gain per frequency, (F) float32 or complex64.

    The computation is in complex128; a real gain is a complex one with imaginary part 0.
    """
    if spectrum.dtype != torch.complex64:
        msg = f"spectrum must be complex64, got {spectrum.dtype}"
        raise TypeError(msg)
    if gain.dtype not in (torch.float32, torch.complex64):
        msg = f"gain must be float32 or complex64, got {gain.dtype}"
        raise TypeError(msg)
    if spectrum.dim() < 1 or gain.dim() != 1 or gain.shape[0] != spectrum.shape[-1]:
        msg = f"gain must have shape (F) for a spectrum (..., F), got {tuple(gain.shape)}, {tuple(spectrum.shape)}"
        raise ValueError(msg)
    return (spectrum.to(torch.complex128) * gain.to(torch.complex128)).to(torch.complex64).contiguous()


@spectral_gain.samples
def _(make: Make) -> Iterator[object]:
    yield make.randn(4, make.size(9), 33, dtype=torch.complex64), make.rand(33)
    yield make.randn(129, dtype=torch.complex64), make.rand(129)


spectral_gain.backward()
