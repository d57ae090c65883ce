"""Tests of concurrent callers."""

from __future__ import annotations

import math
import threading
import time

from opwright.checker.behavior.concurrency import run_concurrently


def works(seconds: float) -> None:
    """Uses the CPU for `seconds`, because waiting does not count towards a caller's time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        math.sqrt(2.0)


def test_the_first_fault_stops_all_callers() -> None:
    calls = [0, 0]

    def content() -> None:
        calls[0] += 1
        works(0.0001)

    def complains() -> str | None:
        calls[1] += 1
        return "a number is wrong" if calls[1] == 3 else None

    assert run_concurrently([content, complains], times=10**6, least_s=0, most_s=30) == "a number is wrong"
    assert calls[1] == 3


def test_fast_callers_continue_until_the_slow_one_finishes() -> None:
    ended: dict[str, float] = {}
    calls = {"quick": 0, "slow": 0}

    def caller(name: str, seconds: float) -> None:
        works(seconds)
        calls[name] += 1
        ended[name] = time.perf_counter()

    callers = [lambda: caller("quick", 0.0001), lambda: caller("slow", 0.02)]
    assert run_concurrently(callers, times=5, least_s=0, most_s=30) is None
    assert calls["slow"] >= 5
    assert calls["quick"] > 50
    assert abs(ended["quick"] - ended["slow"]) < 1


def test_callers_run_concurrently_in_separate_threads() -> None:
    together = threading.Barrier(3, timeout=30)
    threads: set[int] = set()

    def caller() -> None:
        if threading.get_ident() not in threads:
            threads.add(threading.get_ident())
            together.wait()

    assert run_concurrently([caller] * 3, times=1, least_s=0, most_s=30) is None
    assert len(threads) == 3
    assert threading.get_ident() not in threads


def test_callers_stop_between_the_minimum_and_the_maximum_time() -> None:
    started = time.process_time()
    assert run_concurrently([lambda: works(0.001)] * 2, times=10**9, least_s=0, most_s=0.1) is None
    assert 0.1 <= time.process_time() - started < 5
    started = time.process_time()
    assert run_concurrently([lambda: works(0.001)] * 2, times=1, least_s=0.1, most_s=30) is None
    assert 0.1 <= time.process_time() - started < 5


def test_callers_that_only_wait_stop_too() -> None:
    started = time.monotonic()
    assert run_concurrently([lambda: time.sleep(0.05)] * 2, times=10**9, least_s=0, most_s=0.05) is None
    assert 0.5 <= time.monotonic() - started < 20


def test_threads_are_prepared_once_one_at_a_time_before_any_starts() -> None:
    prepared: list[int] = []
    inside: list[int] = []
    most: list[int] = []
    at_first_call: list[int] = []

    def prepare() -> None:
        inside.append(1)
        time.sleep(0.01)
        most.append(len(inside))
        inside.pop()
        prepared.append(threading.get_ident())

    def caller() -> None:
        at_first_call.append(len(prepared))

    assert run_concurrently([caller] * 3, times=2, least_s=0, most_s=30, prepare=prepare) is None
    assert len(set(prepared)) == len(prepared) == 3
    assert set(at_first_call) == {3}
    assert most == [1, 1, 1]
