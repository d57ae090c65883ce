"""Callers in several threads, each of whom does the same over and over while the others do."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A process may wait for a busy machine this many times as long as it works.
_BUSY = 10


def run_concurrently(
    callers: Sequence[Callable[[], str | None]],
    *,
    times: int,
    least_s: float,
    most_s: float,
    prepare: Callable[[], object] = lambda: None,
) -> str | None:
    """Let each caller go on in a thread of its own until one has something to say.

    Time is counted as this process works it: what else keeps the machine busy takes none away, up to a tenfold.

    Args:
        callers: what each thread calls again and again; it returns what is wrong, or None.
        times: how often each is called at least. Who is done first goes on until the last one is: on a busy machine
            they could else come one after the other.
        least_s: seconds that they go on for in any case.
        most_s: seconds after which they end in any case, each when it comes back.
        prepare: called once in each thread before any of them starts, in one thread at a time.

    Returns:
        What the first one had to say; None where nobody had.
    """
    found: list[str] = []
    done = [0] * len(callers)
    ready = threading.Barrier(len(callers))
    one_at_a_time = threading.Lock()
    started, worked = time.monotonic(), time.process_time()

    def seconds() -> float:
        # A caller who waits for something, and works at nothing, comes to an end too.
        return max(time.process_time() - worked, (time.monotonic() - started) / _BUSY)

    def go_on(at: int) -> None:
        try:
            with one_at_a_time:
                prepare()
        finally:
            ready.wait()  # also after an error: the others wait for this thread
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
