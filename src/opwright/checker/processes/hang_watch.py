"""Ends a process whose step hangs; a busy machine, which makes every step slow, does not make it one that hangs."""

from __future__ import annotations

import faulthandler
import threading
import time

# A process that uses less of a core than this waits. A busy machine leaves a process that computes more.
_WAITING = 0.05
_LOOKS = 20  # looks at the process in the time of one limit


class HangWatch:
    """Ends this process, and prints where Python is, if a step takes longer than `limit_s` seconds.

    The time that a busy machine takes away from the process does not count. What counts is the time in which the
    process waits, and its processor time; or, if that is less because of several threads, the time that has passed.

    faulthandler ends the process: native code that never returns, even while it holds the interpreter's lock, does not
    stop that. As long as the process computes, a thread postpones it.

    Args:
        limit_s: the limit in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._is_watching = False
        self._began_s = self._used_s = 0.0
        threading.Thread(target=self._look, name="hang watch", daemon=True).start()

    def restart(self) -> None:
        """Begin a step."""
        with self._lock:
            self._is_watching = True
            self._began_s, self._used_s = time.monotonic(), time.process_time()
            faulthandler.dump_traceback_later(self._limit_s, exit=True)

    def stop(self) -> None:
        """End a step: until the next one begins, the process may take any time."""
        with self._lock:
            self._is_watching = False
            faulthandler.cancel_dump_traceback_later()

    def _look(self) -> None:
        interval_s = self._limit_s / _LOOKS
        before_s = time.process_time()
        while True:
            time.sleep(interval_s)
            used_s = time.process_time()
            computes = used_s - before_s > _WAITING * interval_s
            with self._lock:
                if self._is_watching and computes:
                    faulthandler.dump_traceback_later(self._left_s(), exit=True)
            before_s = used_s

    def _left_s(self) -> float:
        """The seconds that a step has left whose process has computed all the time."""
        passed_s, computed_s = time.monotonic() - self._began_s, time.process_time() - self._used_s
        return max(self._limit_s - min(passed_s, computed_s), 1e-3)
