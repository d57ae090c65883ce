"""The clocks of a bench: wall time and processor time of a block of calls."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

# Bound before a library is opened: if its Python code replaces these functions, the times do not change.
_wall_ns = time.perf_counter_ns
_processor_ns = time.process_time_ns
_Event = torch.cuda.Event
_synchronize = torch.cuda.synchronize


@dataclass(frozen=True)
class Elapsed:
    """The duration of some calls.

    Attributes:
        wall: the time from the first call to the return of the last, in seconds; on a GPU, the duration of its work.
        processor: the processor time of all threads of the process during that time, in seconds.
    """

    wall: float
    processor: float

    def __add__(self, other: Elapsed) -> Elapsed:
        return Elapsed(self.wall + other.wall, self.processor + other.processor)


class Clock(Protocol):
    """Times a block of calls."""

    def elapsed(self, block: Callable[[], None]) -> Elapsed:
        """The duration of `block`."""


class CpuClock:
    """The system's monotonic clock."""

    def elapsed(self, block: Callable[[], None]) -> Elapsed:
        """The duration of `block`, from its first call to the return of its last."""
        processor = _processor_ns()
        wall = _wall_ns()
        block()
        wall = _wall_ns() - wall
        return Elapsed(wall / 1e9, (_processor_ns() - processor) / 1e9)


class CudaClock:
    """Two CUDA events on the current stream; processor time is that of the host.

    The GPU is idle at the first one. Kernels that finish before Python launches the next one are therefore timed with
    the gaps between them, as in a program that makes these calls.
    """

    def elapsed(self, block: Callable[[], None]) -> Elapsed:
        """The duration of `block` on the GPU."""
        first, last = (_Event(enable_timing=True) for _ in range(2))
        _synchronize()
        processor = _processor_ns()
        first.record()
        block()
        last.record()
        processor = _processor_ns() - processor
        last.synchronize()
        return Elapsed(float(first.elapsed_time(last)) / 1e3, processor / 1e9)


def clock_of(device: str) -> Clock:
    """The clock for `cpu` or `cuda`."""
    return CudaClock() if device.startswith("cuda") else CpuClock()


def seconds_now() -> float:
    """The monotonic clock, in seconds, for total durations."""
    return _wall_ns() / 1e9
