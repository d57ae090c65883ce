"""Runs callers concurrently, each repeatedly in a separate thread."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# On a busy machine, a process may wait this many times longer than it runs.
_BUSY = 10


def run_concurrently(
    callers: Sequence[Callable[[], str | None]],
    *,
    times: int,
    least_s: float,
    most_s: float,
    prepare: Callable[[], object] = lambda: None,
) -> str | None:
    """Call each caller repeatedly in a separate thread until one reports a fault.

    Limits are in CPU time of this process, so that other load does not shorten a run, up to ten times that wall time.

    Args:
        callers: the function that each thread calls repeatedly; it returns a fault, or None.
        times: the minimum number of calls per thread. Threads that finish early continue until the last one has: on a
            busy machine, they could otherwise run one after the other.
        least_s: the minimum number of seconds to run.
        most_s: the number of seconds after which no further call starts.
        prepare: called once in each thread, one thread at a time, before any caller starts.

    Returns:
        The first fault, or None.
    """
    found: list[str] = []
    done = [0] * len(callers)
    ready = threading.Barrier(len(callers))
    one_at_a_time = threading.Lock()
    started, worked = time.monotonic(), time.process_time()

    def seconds() -> float:
        # A caller that only waits must stop too.
        return max(time.process_time() - worked, (time.monotonic() - started) / _BUSY)

    def go_on(at: int) -> None:
        try:
            with one_at_a_time:
                prepare()
        finally:
            ready.wait()  # even after an error, because the others wait for this thread
        while not found and (spent := seconds()) < most_s:
            if spent >= least_s and min(done) >= times:
                return
            if (fault := callers[at]()) is not None:
                found.append(fault)
            done[at] += 1

    group = [threading.Thread(target=go_on, args=(at,)) for at in range(len(callers))]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()
    return found[0] if found else None
