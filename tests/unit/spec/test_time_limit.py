from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time

import pytest

from opwright.spec.time_limit import TimeLimitError, time_limit


def work(seconds: float) -> None:
    started = time.process_time()
    while time.process_time() - started < seconds:
        pass


def test_code_that_catches_exceptions_is_interrupted() -> None:
    def catches() -> None:
        with contextlib.suppress(Exception):
            work(10)

    with pytest.raises(TimeLimitError), time_limit(0.05):
        catches()


def test_code_that_catches_everything_once_is_interrupted() -> None:
    def catches() -> None:
        with contextlib.suppress(BaseException):
            work(10)
        work(10)

    with pytest.raises(TimeLimitError), time_limit(0.05):
        catches()


def test_a_finalizer_that_takes_too_long_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __del__(self) -> None:
            work(10)

    class Broken:
        def __del__(self) -> None:
            msg = "its own"
            raise ValueError(msg)

    def finalizes() -> None:
        Broken()
        Slow()
        work(10)

    reported: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(str(unraisable.exc_value)))
    hook = sys.unraisablehook
    with pytest.raises(TimeLimitError), time_limit(0.5):
        finalizes()
    assert reported == ["its own"]
    assert sys.unraisablehook is hook


def test_waiting_uses_no_processor_time() -> None:
    with time_limit(0.05):
        time.sleep(0.2)


def test_the_limit_ends_with_the_block_and_restores_the_handler() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    with time_limit(0.05):
        pass
    work(0.1)
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


@pytest.mark.parametrize("limits", [(0.05, 100), (100, 0.05)])
def test_the_shorter_limit_of_two_nested_blocks_applies(limits: tuple[float, float]) -> None:
    with pytest.raises(TimeLimitError), time_limit(limits[0]), time_limit(limits[1]):
        work(10)


def test_the_outer_limit_continues_after_an_inner_one() -> None:
    def twice() -> None:
        with time_limit(0.2):
            work(0.05)
        work(10)

    with pytest.raises(TimeLimitError), time_limit(0.3):
        twice()


def test_there_is_no_limit_in_another_thread() -> None:
    ended: list[bool] = []

    def run() -> None:
        with time_limit(0.01):
            work(0.05)
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended == [True]


def test_an_error_that_interrupted_code_raises_becomes_a_time_limit_error() -> None:
    def raises() -> None:
        try:
            work(10)
        except TimeLimitError:
            msg = "interrupted"
            raise RuntimeError(msg) from None

    with pytest.raises(TimeLimitError) as found, time_limit(0.05):
        raises()
    assert str(found.value.__cause__) == "interrupted"
    with pytest.raises(ValueError, match="its own"), time_limit(5):
        int("its own")
