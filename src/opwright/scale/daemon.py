"""Runs calls in threads that never block, not even when the process exits."""

from __future__ import annotations

import atexit
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_PATIENCE_S = 1.0
_threads: WeakSet[threading.Thread] = WeakSet()


def in_daemon_thread(call: Callable[[], T], name: str) -> Future[T]:
    """Run `call` in a new daemon thread; the threads of an executor would keep the process from exiting."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  raised where the result is read
            future.set_exception(error)

    thread = threading.Thread(target=run, daemon=True, name=name)
    _threads.add(thread)
    thread.start()
    return future


@atexit.register
def _join() -> None:
    """Give threads a second to finish: Python ends the others, which aborts the process if one runs C++ code."""
    until = time.monotonic() + _PATIENCE_S
    for thread in [*_threads]:
        thread.join(max(0.0, until - time.monotonic()))
