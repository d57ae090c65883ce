"""Tests of the state of the process before and after calls of Python-only operators."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.behavior.process_state import check_process_state, differences, restore, state
from opwright.checker.behavior.results import check_results
from opwright.checker.kinds import Kind
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from opwright.checker.subject import Subject
    from tests.unit.checker.behavior.conftest import RunChecks


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before, variables = state(), dict(os.environ)
    yield
    restore(before)
    # Python keeps its own copy of the variables, which the processes of later tests would inherit.
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def changed_by(change: Callable[[], Any]) -> dict[str, tuple[str, str]]:
    before = state()
    change()
    return differences(before, state())


CHANGES: dict[str, tuple[Callable[[], Any], tuple[str, str]]] = {
    "the number of PyTorch's threads": (lambda: torch.set_num_threads(torch.get_num_threads() + 1), ("", "")),
    "grad mode": (lambda: torch.set_grad_enabled(mode=False), ("True", "False")),
    "the default dtype": (lambda: torch.set_default_dtype(torch.float64), ("torch.float32", "torch.float64")),
    "deterministic mode": (lambda: torch.set_deterministic_debug_mode(1), ("0", "1")),
    "flushing of denormals to zero": (lambda: torch.set_flush_denormal(True), ("False", "True")),
    "the working directory": (lambda: os.chdir("/usr"), ("", "/usr")),
    "environment variables": (lambda: os.environ.update(MISBEHAVING="here"), ("MISBEHAVING unset", "MISBEHAVING=here")),
    "signal handlers": (
        lambda: signal.signal(signal.SIGUSR2, signal.SIG_IGN),
        ("SIGUSR2 by default", "SIGUSR2 ignored"),
    ),
    "blocked signals": (lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]), ("[]", "")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_described_and_undone(what: str) -> None:
    change, (was, now) = CHANGES[what]
    before = state()
    if what == "flushing of denormals to zero" and not torch.set_flush_denormal(False):
        pytest.skip("this processor has no such mode")
    change()
    changed = differences(before, state())
    assert list(changed) == [what]
    assert was in changed[what][0]
    assert now in changed[what][1]
    restore(before)
    assert differences(before, state()) == {}


def test_drawn_random_numbers_are_a_change_shown_without_the_generator_state() -> None:
    assert changed_by(lambda: torch.rand(1)) == {"PyTorch's random number generator": ("the earlier state", "changed")}
    assert changed_by(random.random) == {"Python's random number generator": ("the earlier state", "changed")}


def test_an_open_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "left open"
    with contextlib.ExitStack() as stack:
        changed = changed_by(lambda: stack.enter_context(path.open("w")))
    (number, now), was = changed["open files"][1].split("="), changed["open files"][0]
    assert now == str(path)
    assert was == f"{number} unset"


def test_a_removed_or_changed_variable_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST", "1")
    monkeypatch.setenv("SECOND", "2")
    before = state()
    os.environ["FIRST"] = "3"
    del os.environ["SECOND"]
    changed = differences(before, state())
    assert changed == {"environment variables": ("FIRST=1, SECOND=2", "FIRST=3, SECOND unset")}
    restore(before)
    assert differences(before, state()) == {}


def test_at_most_four_variables_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()
    for number in range(9):
        monkeypatch.setenv(f"VARIABLE_{number}", "1")
    _, now = differences(before, state())["environment variables"]
    assert now == ", ".join(f"VARIABLE_{number}=1" for number in range(4))


# -- operators ------------------------------------------------------------------------------------------------

RANDOM = """
first = torch.rand(1)

@library.op
def f(x: Tensor) -> Tensor:
    return x + torch.rand(1)

@f.samples
def _(make):
    yield torch.rand(4, 3)
"""


@pytest.fixture
def subject(make_subject: MakeSubject) -> Subject:
    return make_subject(operator("x: Tensor", "x + 1", "make.randn(4, 3)"), quick=True)


def faults(subject: Subject, failures: RunChecks, change: Callable[[], Any]) -> dict[str, str]:
    """The faults of an otherwise correct operator that makes this change in each call."""

    def f(x: Tensor) -> Tensor:
        change()
        return x + 1

    subject.overload = f
    subject.state_before_loading = state()
    found = failures(subject, check_process_state)
    assert all((failure.kind, failure.case) == (Kind.PROCESS_STATE, "sample 1") for failure in found)
    return {failure.got: failure.expected for failure in found}


def test_a_correct_operator_changes_nothing(subject: Subject, failures: RunChecks) -> None:
    assert faults(subject, failures, lambda: None) == {}


def test_a_change_by_an_operator_is_a_fault_and_is_undone(subject: Subject, failures: RunChecks) -> None:
    folder = Path.cwd()
    found = faults(subject, failures, lambda: os.chdir("/usr"))
    assert found == {"the working directory: /usr afterwards": f"the working directory: {folder}, as before"}
    assert Path.cwd() == folder


def test_a_change_before_an_error_is_a_fault(subject: Subject, failures: RunChecks) -> None:
    def change() -> None:
        torch.set_default_dtype(torch.float64)
        raise ValueError

    assert faults(subject, failures, change) == {
        "the default dtype: torch.float64 afterwards": "the default dtype: torch.float32, as before"
    }


@pytest.mark.parametrize("rejects", [False, True])
def test_a_change_by_a_variation_alone_is_a_fault_of_that_variation(
    subject: Subject, failures: RunChecks, rejects: bool
) -> None:
    def f(x: Tensor) -> Tensor:
        if x.dim() == 1:
            torch.set_num_threads(before + 1)
            if rejects:
                raise ValueError
        return x + 1

    before = torch.get_num_threads()
    subject.overload = f
    found = failures(subject, lambda subject, recorder: check_results(subject, recorder, subject.varied))
    (fault,) = (one for one in found if one.kind is Kind.PROCESS_STATE)
    assert fault.case == "sample 1, all tensors flattened"
    assert fault.got == f"the number of PyTorch's threads: {before + 1} afterwards"
    assert torch.get_num_threads() == before


def test_printing_is_a_fault(subject: Subject, failures: RunChecks) -> None:
    found = faults(subject, failures, lambda: os.write(1, b"computing"))
    assert found == {"standard output: 'computing' afterwards": "standard output: nothing, as before"}


def test_what_was_printed_before_is_not_attributed_to_a_call(subject: Subject, failures: RunChecks) -> None:
    with open(1, "w", closefd=False) as buffered, contextlib.redirect_stdout(buffered):
        buffered.write("loaded\n")
        assert faults(subject, failures, lambda: None) == {}


def test_leaving_a_thread_in_each_call_is_a_fault(subject: Subject, failures: RunChecks) -> None:
    enough = threading.Event()
    try:
        ((got, expected),) = faults(subject, failures, lambda: threading.Thread(target=enough.wait).start()).items()
    finally:
        enough.set()
    now, was = (int(text.removeprefix("the number of threads: ").split()[0].rstrip(",")) for text in (got, expected))
    assert (got, expected) == (f"the number of threads: {now} afterwards", f"the number of threads: {was}, as before")
    assert now == was + 4


def test_one_thread_that_keeps_running_is_not_a_fault(subject: Subject, failures: RunChecks) -> None:
    enough = threading.Event()
    started: list[threading.Thread] = []

    def start_one() -> None:
        if not started:
            started.append(threading.Thread(target=enough.wait))
            started[0].start()

    try:
        assert faults(subject, failures, start_one) == {}
    finally:
        enough.set()


def test_random_numbers_are_a_fault_unless_the_reference_draws_them(
    subject: Subject, make_subject: MakeSubject, failures: RunChecks
) -> None:
    (got,) = faults(subject, failures, lambda: torch.rand(1))
    assert got == "PyTorch's random number generator: changed afterwards"
    before = state()
    random_too = make_subject(RANDOM, quick=True)
    random_too.state_before_loading = before
    assert failures(random_too, check_process_state) == ()


def test_a_change_by_loading_the_library_is_a_separate_fault(subject: Subject, failures: RunChecks) -> None:
    subject.state_before_loading = state()
    torch.set_default_dtype(torch.float64)
    (found,) = failures(subject, check_process_state)
    assert (found.case, found.got) == ("loading the library", "the default dtype: torch.float64 afterwards")
    assert found.expected == "the default dtype: torch.float32, as before"
    assert found.repro == f"import opwright, torch\nopwright.open({str(subject.library.root)!r})"
    assert torch.get_default_dtype() is torch.float32
