"""The clocks of a bench: wall time and processor time of a block of calls."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

# Bound before a library is opened, so that its Python code cannot replace these functions.
_wall_ns = time.perf_counter_ns
_processor_ns = time.process_time_ns
_Event = torch.cuda.Event
_current_stream = torch.cuda.current_stream
_synchronize = torch.cuda.synchronize

# The number of waits for an idle GPU that a GPU clock times.
_IDLE_WAITS = 21
# The GPU was busy if a wait is longer than this multiple of a wait for an idle GPU, than this number of seconds, and
# than this fraction of the block's time. A wait after many launches may take several times as long as one for an idle
# GPU: on an H100, up to 90 microseconds instead of 8.
_IDLE_FACTOR = 3
_LEAST_LATE_S = 10e-6
_LEAST_LATE_SHARE = 0.25


@dataclass(frozen=True)
class Elapsed:
    """The duration of some calls.

    Attributes:
        wall: the time from the first call to the return of the last, in seconds; on a GPU, the duration of its work.
        processor: the processor time of all threads of the process during that time, in seconds.
        host: on a GPU, the time until the last call returned, in seconds, whether or not its work had finished.
        late: the part of `wall` in which only streams were busy that the current one does not wait for, in seconds.
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

    The GPU is idle at the first event. The time therefore includes the gaps between kernels that finish before Python
    launches the next one, as in a program that makes these calls.

    No event records when other streams finish: an event on the default stream does not wait for a stream that was
    created with `cudaStreamNonBlocking`, as PyTorch's are. So the clock waits for the whole GPU after the last event.
    If that takes much longer than a wait for an idle GPU, other streams were still busy, and the wait is included.

    Args:
        flushed: memory that is overwritten before each block, to flush the GPU's cache.
    """

    def __init__(self, flushed: torch.Tensor | None = None) -> None:
        self._flushed = flushed
        # Created once: the first record of an event creates it, which takes as long as a launch.
        self._first, self._last = (_Event(enable_timing=True) for _ in range(2))
        self._last.record(_current_stream())
        self._idle_s = statistics.median(self._wait() for _ in range(_IDLE_WAITS))

    def elapsed(self, block: Callable[[], None]) -> Elapsed:
        """The duration of `block` on the GPU, until all of its streams are idle."""
        # Record both events on one stream, even if a call changes the current stream.
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
        """The duration of a wait for all streams after the last event, in seconds."""
        self._last.synchronize()
        started = _wall_ns()
        _synchronize()
        return (_wall_ns() - started) / 1e9


def clock_of(device: str) -> Clock:
    """The clock for `cpu` or `cuda`."""
    return CudaClock() if device.startswith("cuda") else CpuClock()


def cold_clock_of(device: str) -> Clock | None:
    """The clock for single calls with none of their data in the GPU's L2 cache; None for `cpu`."""
    if not device.startswith("cuda"):
        return None
    # Twice the cache's size: evicts every line under any replacement policy.
    count = 2 * torch.cuda.get_device_properties(device).L2_cache_size
    return CudaClock(torch.empty(count, dtype=torch.uint8, device=device))


def seconds_now() -> float:
    """The monotonic clock, in seconds, for total durations."""
    return _wall_ns() / 1e9
