"""Measures the speeds that cells on a GPU are compared with, once per bench."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from opwright.bencher.flops import flops_of
from opwright.bencher.gpu_state import GpuState, gpu_state
from opwright.bencher.on_gpu import OnGpu
from opwright.bencher.speeds import MULTIPLIED, copied_per_second, described_product, multiplied_per_second

if TYPE_CHECKING:
    import torch

    from opwright.bencher.result import Direction
    from opwright.bencher.subject import Subject


class Gauge:
    """The speeds of the GPU, each measured on first use, and its state."""

    def __init__(self) -> None:
        self._products: dict[torch.dtype, float] = {}
        self._has_state = True

    def state(self) -> GpuState | None:
        """The current state of the GPU; None if unknown."""
        found = gpu_state() if self._has_state else None
        self._has_state = found is not None  # if it is missing, do not look for it before and after each cell
        return found

    def record(self, subject: Subject, direction: Direction, before: GpuState | None) -> OnGpu:
        """The record of a cell that was just timed.

        Args:
            subject: the operator at the cell's size.
            direction: the cell's direction.
            before: the state before the first call.
        """
        after = self.state()
        flops = _flops(subject, direction)
        dtype = next((one.dtype for one in subject.tensors_in if one.dtype in MULTIPLIED), None) if flops else None
        return OnGpu(
            flops=flops,
            copied_per_second=self._copied_per_second,
            product=described_product(dtype) if dtype else "",
            multiplied_per_second=self._multiplied_per_second(dtype) if dtype else 0.0,
            before=before,
            after=after,
        )

    @functools.cached_property
    def _copied_per_second(self) -> float:
        return copied_per_second()

    def _multiplied_per_second(self, dtype: torch.dtype) -> float:
        if dtype not in self._products:
            self._products[dtype] = multiplied_per_second(dtype)
        return self._products[dtype]


def _flops(subject: Subject, direction: Direction) -> int:
    """The floating-point operations of the reference; 0 if it cannot be called, or some of them are not counted."""
    try:
        return flops_of(subject, direction)
    except Exception:
        return 0
