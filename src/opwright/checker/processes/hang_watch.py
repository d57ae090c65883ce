"""Ends a process whose step hangs, without mistaking a slow step on a busy machine for a hang."""

from __future__ import annotations

import faulthandler
import math
import threading
import time

# A process that uses less of a core than this is waiting. Even a busy machine leaves more to a process that computes.
_WAITING = 0.05
_LOOKS = 20  # how often the thread looks at the process within one limit


class HangWatch:
    """Ends this process, and prints Python's stack, if a step takes longer than `limit_s` seconds.

    Time in which a busy machine does not run the process does not count. The time of a step is its waiting time plus
    its CPU time, or the elapsed time if that is less because of several threads.

    faulthandler ends the process, even if native code never returns and holds the GIL. As long as the process computes,
    a thread postpones that.

    Args:
        limit_s: the limit in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._interval_s = limit_s / _LOOKS
        self._lock = threading.Lock()
        self._is_watching = False
        self._began_s = self._used_s = 0.0
        self._ends_s = -math.inf  # when faulthandler ends the process
        threading.Thread(target=self._look, name="hang watch", daemon=True).start()

    def restart(self) -> None:
        """Start a step."""
        with self._lock:
            self._is_watching = True
            self._began_s, self._used_s = time.monotonic(), time.process_time()
            # Each postponement starts a thread, which takes longer than many steps do.
            if self._ends_s - self._began_s < self._limit_s:
                self._end_in(self._limit_s + self._interval_s)

    def stop(self) -> None:
        """End a step: there is no time limit until the next one starts."""
        with self._lock:
            self._is_watching = False
            self._ends_s = -math.inf
            faulthandler.cancel_dump_traceback_later()

    def _look(self) -> None:
        before_s = time.process_time()
        while True:
            time.sleep(self._interval_s)
            used_s = time.process_time()
            computes = used_s - before_s > _WAITING * self._interval_s
            with self._lock:
                if self._is_watching and computes:
                    self._end_in(self._left_s())
            before_s = used_s

    def _end_in(self, seconds: float) -> None:
        """End the process, unless that is postponed."""
        self._ends_s = time.monotonic() + seconds
        faulthandler.dump_traceback_later(seconds, exit=True)

    def _left_s(self) -> float:
        """The seconds that are left for a step whose process has been computing all the time."""
        passed_s, computed_s = time.monotonic() - self._began_s, time.process_time() - self._used_s
        return max(self._limit_s - min(passed_s, computed_s), 1e-3)
