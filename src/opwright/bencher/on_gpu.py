"""The GPU speeds and states that a bench records for a cell along with its times, and the rates computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opwright.bencher.gpu_state import GpuState

_NOTABLE_DROP = 0.1


@dataclass(frozen=True)
class OnGpu:
    """The speeds that the times of a cell on a GPU are compared with, and the state of the GPU around them.

    Attributes:
        flops: the floating-point operations of the matrix products in the reference.
        copied_per_second: the bytes per second that a large copy moves, read and written.
        product: the dtype of the matrix product that the cell is compared with; empty if `flops` is 0.
        multiplied_per_second: the floating-point operations per second of a large matrix product; 0 without one.
        before: the state before the first call; None if unknown.
        after: the state after the last call; None if unknown.
    """

    flops: int
    copied_per_second: float
    product: str
    multiplied_per_second: float
    before: GpuState | None
    after: GpuState | None

    @property
    def slowed_down(self) -> bool:
        """Whether the clock of the multiprocessors dropped by more than 10 %."""
        if self.before is None or self.after is None:
            return False
        return self.after.sm_mhz < (1 - _NOTABLE_DROP) * self.before.sm_mhz


@dataclass(frozen=True)
class Rates:
    """The rates of a row.

    Attributes:
        bytes_per_second: the bytes of the cell, each read or written once, per time of a call: a lower bound.
        of_copy: the same, relative to a large copy; above 1 if the bytes stay in a cache.
        flops_per_second: the cell's floating-point operations per time of a call; None if it has none.
        of_product: the same, relative to a large matrix product; None if there is none.
    """

    bytes_per_second: float
    of_copy: float
    flops_per_second: float | None = None
    of_product: float | None = None

    @classmethod
    def of(cls, gpu: OnGpu, count: int, seconds: float, *, computes: bool) -> Rates:
        """The rates of a call that takes `seconds`.

        Args:
            gpu: the speeds to compare with.
            count: the number of bytes of the cell.
            seconds: the time of a call.
            computes: whether the row computes what the reference does; the floor need not.
        """
        moved = count / seconds
        if not (computes and gpu.flops):
            return cls(moved, moved / gpu.copied_per_second)
        computed = gpu.flops / seconds
        of_product = computed / gpu.multiplied_per_second if gpu.multiplied_per_second else None
        return cls(moved, moved / gpu.copied_per_second, computed, of_product)
