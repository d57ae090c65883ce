"""Calls in threads that nobody has to wait for, not even the process when it exits."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def in_daemon_thread(call: Callable[[], T], name: str) -> Future[T]:
    """Call something in a daemon thread of its own; the threads of an executor would keep the process from exiting."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  raised where the result is taken
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name=name).start()
    return future
