"""The clocks of a bench: wall time and processor time of a block of calls."""

from __future__ import annotations

import statistics
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
_current_stream = torch.cuda.current_stream
_synchronize = torch.cuda.synchronize

# How often a clock of a GPU times a wait for an idle GPU.
_IDLE_WAITS = 21
# A longer wait than this many of those, than this many seconds, and than this share of the block's time, means that the
# GPU was at work. A wait after many launches may take several times as long as one for an idle GPU: on an H100, up to
# 90 microseconds where the others took 8.
_IDLE_FACTOR = 3
_LEAST_LATE_S = 10e-6
_LEAST_LATE_SHARE = 0.25


@dataclass(frozen=True)
class Elapsed:
    """The duration of some calls.

    Attributes:
        wall: the time from the first call to the return of the last, in seconds; on a GPU, the duration of its work.
        processor: the processor time of all threads of the process during that time, in seconds.
        host: on a GPU, the time until the last call returned, in seconds, whether or not its work was done.
        late: the part of `wall` in which only streams worked that the current one does not wait for, in seconds.
    """

    wall: float
    processor: float
    host: float | None = None
    late: float = 0.0

    def __add__(self, other: Elapsed) -> Elapsed:
        host = None if self.host is None or other.host is None else self.host + other.host
        return Elapsed(self.wall + other.wall, self.processor + other.processor, host, self.late + other.late)


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
    """Two CUDA events on the current stream, and a wait for all other streams; processor time is that of the host.

    The GPU is idle at the first event. Kernels that finish before Python launches the next one are therefore timed with
    the gaps between them, as in a program that makes these calls.

    No event shows when other streams end: one on the default stream does not wait for a stream that was made with
    `cudaStreamNonBlocking`, as PyTorch's are. So after the last event, the clock waits for the whole GPU. If that takes
    much longer than a wait for an idle GPU does, other streams were still at work, and the wait is part of the time.

    Args:
        flushed: memory that is overwritten before each block, so that the GPU's cache holds nothing else.
    """

    def __init__(self, flushed: torch.Tensor | None = None) -> None:
        self._flushed = flushed
        # Made once: the first record of an event creates it, which takes as long as a launch.
        self._first, self._last = (_Event(enable_timing=True) for _ in range(2))
        self._last.record(_current_stream())
        self._idle_s = statistics.median(self._wait() for _ in range(_IDLE_WAITS))

    def elapsed(self, block: Callable[[], None]) -> Elapsed:
        """The duration of `block` on the GPU, until all of its streams are idle."""
        # Both events belong to one stream, even if a call makes another one the current stream.
        stream = _current_stream()
        if self._flushed is not None:
            self._flushed.zero_()
        _synchronize()
        processor = _processor_ns()
        self._first.record(stream)
        host = _wall_ns()
        block()
        host = _wall_ns() - host
        self._last.record(stream)
        processor = _processor_ns() - processor
        waited = self._wait()
        wall = float(self._first.elapsed_time(self._last)) / 1e3
        is_late = waited > max(_IDLE_FACTOR * self._idle_s, _LEAST_LATE_S, _LEAST_LATE_SHARE * wall)
        late = waited - self._idle_s if is_late else 0.0
        return Elapsed(wall + late, processor / 1e9, host / 1e9, late)

    def _wait(self) -> float:
        """How long a wait for all streams takes after the last event, in seconds."""
        self._last.synchronize()
        started = _wall_ns()
        _synchronize()
        return (_wall_ns() - started) / 1e9


def clock_of(device: str) -> Clock:
    """The clock for `cpu` or `cuda`."""
    return CudaClock() if device.startswith("cuda") else CpuClock()


def cold_clock_of(device: str) -> Clock | None:
    """The clock for single calls that find none of their data in the GPU's L2 cache; None for `cpu`."""
    if not device.startswith("cuda"):
        return None
    # Twice its size: no line survives, whichever the cache replaces first.
    count = 2 * torch.cuda.get_device_properties(device).L2_cache_size
    return CudaClock(torch.empty(count, dtype=torch.uint8, device=device))


def seconds_now() -> float:
    """The monotonic clock, in seconds, for total durations."""
    return _wall_ns() / 1e9
