"""First calls in fresh processes, and how these processes exit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.processes.first_calls import check_first_calls
from opwright.checker.processes.served_process import kind_of_ending
from opwright.checker.processes.verdicts import Verdicts
from opwright.toolchain.signals import ending
from tests.interpreter import server
from tests.unit.checker.conftest import job_of

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.verdict import Failure
    from tests.unit.conftest import Describe

OPERATOR = """
import ctypes, sys
started, table = [], []

# The judge, this test, calls the operator too, as its reference.
is_judge = "pytest" in sys.modules

@ctypes.CFUNCTYPE(None)
def end():
    os._exit(3)

@library.op
def f(x: Tensor) -> Tensor:
    if not is_judge:
        {}
    return x + 1

@f.samples
def _(make):
    yield make.randn(40)
"""
# The first call sleeps while the others find an empty table.
FILLS_A_TABLE_LATE = "started or (started.append(1), time.sleep(0.5), table.append(1)); x = x if table else x * 0"
SAMPLE = "sample 1: first calls, from 4 threads"


# The first call prepares a table for half a second, and the others reject the unfinished table.
REJECTS_A_TABLE_IN_PREPARATION = """if not started:
            started.append(1)
            time.sleep(0.5)
            table.append(1)
        elif not table:
            raise ValueError("the table is not ready")"""
DOMAIN = """
@f.domain
def _(x):
    return bool(x[0] == x.min())

@f.samples
def _(make):
    yield torch.arange(9.0)
"""


def faults(
    describe: Describe, work: Path, body: str, runtime: str = "eager", more: str = "", step_limit_s: float = 300.0
) -> list[Failure]:
    library = describe(OPERATOR.format(body) + more)
    job = job_of(library, [("f", runtime)], work, step_limit_s=step_limit_s)
    found = check_first_calls(job, Verdicts(job), {}, server())
    assert list(found) in ([], [(f"{library.namespace}::f", "cpu")])
    return [failure for listed in found.values() for failure in listed]


def test_a_correct_operator_has_no_fault(describe: Describe, tmp_path: Path) -> None:
    assert faults(describe, tmp_path, "pass") == []


def test_an_error_that_every_call_raises_is_left_to_sequential_calls(describe: Describe, tmp_path: Path) -> None:
    assert faults(describe, tmp_path, "raise ValueError") == []


def test_a_table_that_the_first_call_fills_too_late_is_a_data_race(describe: Describe, tmp_path: Path) -> None:
    first, *_ = faults(describe, tmp_path, FILLS_A_TABLE_LATE)
    assert first.kind is Kind.RACE
    assert first.case.startswith("sample 1, first caller ")
    assert "40 of 40 elements differ" in first.got
    assert first.repro.startswith("# as the first calls of a process, from several threads:\nimport opwright")


def test_an_error_that_the_same_call_alone_does_not_raise_is_a_data_race(describe: Describe, tmp_path: Path) -> None:
    first, *_ = faults(describe, tmp_path, REJECTS_A_TABLE_IN_PREPARATION)
    assert first.kind is Kind.RACE
    assert first.case.startswith("sample 1, first caller ")
    assert first.got == "ValueError: the table is not ready"
    assert first.expected == "a result, as the same call alone returns afterwards"
    assert first.repro.startswith("# as the first calls of a process, from several threads:\nimport opwright")


def test_first_calls_that_do_not_return_are_a_hang(describe: Describe, tmp_path: Path) -> None:
    (failure,) = faults(describe, tmp_path, "time.sleep(999)", step_limit_s=2.0)
    assert (failure.kind, failure.case, failure.got) == (Kind.HANG, SAMPLE, "not finished after 2 s")


def test_first_calls_are_inside_the_domain(describe: Describe, tmp_path: Path) -> None:
    assert faults(describe, tmp_path, "x[0] == x.min() or os.abort()", more=DOMAIN) == []


def test_only_eager_mode_makes_first_calls(describe: Describe, tmp_path: Path) -> None:
    assert faults(describe, tmp_path, FILLS_A_TABLE_LATE, runtime="trace") == []


@pytest.mark.parametrize(
    ("body", "kind", "got"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", Kind.CRASH, "the process was terminated by SIGSEGV"),
        ("os._exit(5)", Kind.EXIT, "the process exited with code 5"),
    ],
)
def test_the_exit_of_a_process_during_first_calls_determines_the_kind(
    describe: Describe, tmp_path: Path, body: str, kind: Kind, got: str
) -> None:
    (failure,) = faults(describe, tmp_path, body)
    assert (failure.kind, failure.case, failure.got) == (kind, SAMPLE, got)
    assert failure.expected == "a result, or an error"


def test_a_process_that_fails_to_exit_cleanly_after_its_calls_is_a_fault(describe: Describe, tmp_path: Path) -> None:
    (failure,) = faults(
        describe, tmp_path, "started or (started.append(1), ctypes.CDLL(None).__cxa_atexit(end, None, None))"
    )
    assert (failure.kind, failure.case) == (Kind.EXIT, "after the calls")
    assert (failure.got, failure.expected) == ("the process exited with code 3", "exit code 0")


@pytest.mark.parametrize(
    ("exit_code", "output", "kind", "words"),
    [
        (0, "", Kind.EXIT, "exited with code 0"),
        (-11, "", Kind.OUT_OF_BOUNDS, "was terminated by SIGSEGV"),
        (-7, "", Kind.OUT_OF_BOUNDS, "was terminated by SIGBUS"),
        (-6, "free(): invalid next size (normal)", Kind.HEAP, "was terminated by SIGABRT"),
        (-6, "malloc(): corrupted top size", Kind.HEAP, "was terminated by SIGABRT"),
        (-6, "terminate called after throwing", Kind.CRASH, "was terminated by SIGABRT"),
        (-8, "", Kind.CRASH, "was terminated by SIGFPE"),
        (-4, "", Kind.CRASH, "was terminated by SIGILL"),
        (-9, "", Kind.CRASH, "was terminated by SIGKILL from outside, as when memory runs out"),
        (-200, "", Kind.CRASH, "was terminated by signal 200"),
    ],
)
def test_each_exit_of_a_process_has_a_kind_and_a_description(
    exit_code: int, output: str, kind: Kind, words: str
) -> None:
    assert kind_of_ending(exit_code, output, Kind.OUT_OF_BOUNDS) is kind
    assert ending(exit_code) == words


@pytest.mark.parametrize(
    ("exit_code", "output", "kind"),
    [
        (0, "", Kind.EXIT),
        (-11, "", Kind.RACE),
        (-6, "free(): invalid next size (normal)", Kind.RACE),
        (-8, "", Kind.RACE),
        (-9, "", Kind.CRASH),
    ],
)
def test_any_signal_that_ends_only_concurrent_calls_is_a_race(exit_code: int, output: str, kind: Kind) -> None:
    assert kind_of_ending(exit_code, output, Kind.RACE) is kind
