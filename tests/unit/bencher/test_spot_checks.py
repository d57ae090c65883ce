"""Implementations that are correct when they are verified, and cheat when they are timed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from opwright.bencher.cells import cells_at
from opwright.bencher.contents import Contents
from opwright.bencher.spot_checks import SpotChecks
from opwright.bencher.stopping import RoundsRule
from tests.unit.bencher.conftest import GROWN, draws_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.bencher.result import Cell, Direction, Row
    from opwright.bencher.subject import Subject
    from tests.unit.bencher.conftest import MakeSubject

OP = """
@library.op
def tripled(x: Tensor) -> Tensor:
    return x * 3

@tripled.sweep
def _(make):
    yield "hundred", (make.randn(10, 10),)
"""
LATE = 10  # calls after which an implementation cheats: more than verify it, but fewer than are timed
CHANGED = "wrong when timed: the result changed after the call had returned"


class Watcher:
    """Ignores the progress."""

    def start(self, sizes: int | None) -> None: ...
    def begin(self, cell: str) -> None: ...
    def round(self) -> None: ...
    def end(self, cell: Cell) -> None: ...
    def end_size(self) -> None: ...


def native_row(subject: Subject, implementation: Callable[..., Any], direction: Direction = "forward") -> Row:
    implementations = {"reference": subject.op.reference, "native": implementation}
    (cell,) = cells_at(subject, draws_of(subject), implementations, [direction], RoundsRule(4), Watcher())  # type: ignore[arg-type]
    reference, native, floor = cell.rows
    assert (reference.status, floor.status) == ("timed", "timed")
    return native


@pytest.fixture
def subject(make_subject: MakeSubject) -> Subject:
    return make_subject(OP)


@pytest.mark.parametrize("direction", ["forward", "recorded", "backward", "both"])
def test_an_implementation_that_is_correct_in_each_call_is_timed(subject: Subject, direction: Direction) -> None:
    assert native_row(subject, lambda x: x + 2 * x, direction).status == "timed"


def test_mutated_arguments_of_timed_calls_are_compared(make_subject: MakeSubject) -> None:
    calls: list[None] = []

    def grows_less_later(x: Tensor, by: float = 2.0) -> None:
        calls.append(None)
        x.add_(by if len(calls) < LATE else by / 2)

    def grows(x: Tensor, by: float = 2.0) -> None:
        x.add_(by)

    assert native_row(make_subject(GROWN), grows).status == "timed"
    row = native_row(make_subject(GROWN), grows_less_later)
    assert row.status == "wrong"
    assert row.reason.startswith("wrong when timed: float32 (100,), at [0]: ")


@pytest.mark.parametrize("direction", ["forward", "recorded", "backward", "both"])
def test_a_reference_that_returns_its_argument_has_no_fault(make_subject: MakeSubject, direction: Direction) -> None:
    # The gradients of a sum do too: each is the incoming gradient.
    subject = make_subject(OP.replace("return x * 3", "return x.view(-1)"))
    assert native_row(subject, lambda x: x.reshape(100), direction).status == "timed"


def test_results_that_the_next_call_overwrites_are_accepted_only_with_cuda_graphs(subject: Subject) -> None:
    def replayed() -> Callable[[Tensor], Tensor]:
        return functools.partial(lambda reused, x: torch.mul(x, 3, out=reused), torch.empty(10, 10))

    implementations = {"reference": subject.op.reference, "graphed": replayed(), "native": replayed()}
    (cell,) = cells_at(subject, draws_of(subject), implementations, ["forward"], RoundsRule(4), Watcher())  # type: ignore[arg-type]
    reference, graphed, native, _ = cell.rows
    assert (reference.status, graphed.name, graphed.status) == ("timed", "graphed", "timed")
    assert (native.status, native.reason) == ("wrong", CHANGED)


@pytest.mark.parametrize("key", [lambda x: x.data_ptr(), lambda x: x[5, 5].item()], ids=["address", "one element"])
def test_cached_results_are_wrong(subject: Subject, key: Callable[[Tensor], float]) -> None:
    known: dict[float, Tensor] = {}
    row = native_row(subject, lambda x: known.setdefault(key(x), x * 3))
    assert row.status == "wrong"
    assert row.timing is None
    assert row.reason.startswith("wrong when timed: float32 (10, 10), at [")


def test_work_that_is_omitted_later_is_detected(subject: Subject) -> None:
    calls: list[Tensor] = []

    def idle(x: Tensor) -> Tensor:
        if len(calls) < LATE:
            calls.append(x * 3)
        return calls[-1]

    assert native_row(subject, idle).status == "wrong"


def test_a_result_that_changes_after_the_call_is_detected(subject: Subject) -> None:
    owed: list[tuple[Tensor, Tensor]] = []
    calls: list[None] = []

    def changes_its_last_result(x: Tensor) -> Tensor:
        for earlier, result in owed:
            result.copy_(earlier + 1)
        calls.append(None)
        owed[:] = [(x, x * 3)] if len(calls) > LATE else []
        return owed[0][1] if owed else x * 3

    assert native_row(subject, changes_its_last_result).reason == CHANGED


def test_a_late_result_is_distinguished_from_a_wrong_one(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    owed: list[tuple[Tensor, Tensor]] = []
    calls: list[None] = []

    def late(x: Tensor) -> Tensor:
        calls.append(None)
        if len(calls) < LATE:
            return x * 3
        owed.append((x.clone(), torch.zeros_like(x)))
        return owed[-1][1]

    def finish(seconds: float) -> None:
        assert seconds > 0
        for x, result in owed:
            result.copy_(x * 3)

    # The late thread runs while `bench` waits.
    monkeypatch.setattr("opwright.bencher.spot_checks._sleep", finish)
    assert native_row(subject, late).reason == CHANGED


def test_a_call_that_writes_to_its_argument_is_detected_and_the_arguments_are_restored(subject: Subject) -> None:
    calls: list[None] = []

    def clears(x: Tensor) -> Tensor:
        calls.append(None)
        return x * 3 if len(calls) < LATE else x.zero_() * 3

    row = native_row(subject, clears)
    assert row.reason == "wrong when timed: the call changed an argument that it does not declare in mutates"


class Tripled(torch.autograd.Function):
    """x * 3, whose gradient is wrong after some calls."""

    calls = 0

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x * 3

    @staticmethod
    def backward(_: Any, *grads: Tensor) -> Tensor:
        Tripled.calls += 1
        return grads[0] * (3 if Tripled.calls < LATE else 2)


@pytest.mark.parametrize("direction", ["backward", "both"])
def test_gradients_of_timed_calls_are_compared(
    subject: Subject, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tripled, "calls", 0)
    row = native_row(subject, Tripled.apply, direction)
    assert row.status == "wrong"
    assert row.reason.startswith("wrong when timed: the gradient of x: float32 (10, 10), at [0, 0]: ")


@pytest.mark.parametrize(("count", "most"), [(1, 2), (2**23, 1)])
def test_few_rounds_are_held_at_the_same_time(make_subject: MakeSubject, count: int, most: int) -> None:
    subject = make_subject(OP.replace("make.randn(10, 10)", f"make.randn({count})"))
    checks = SpotChecks(Contents(subject, draws_of(subject)), "forward", ["native"])
    looked_at = []
    for rounds in range(50):
        if checks.wants(rounds):
            checks.begin()
            looked_at.append(rounds)
        assert len(checks._rounds) <= most
    assert looked_at[:most] == list(range(most))
    checks.begin()
    assert len(checks._rounds) == most + 1


def test_an_exception_in_a_timed_call_is_a_fault_of_its_row(subject: Subject) -> None:
    calls: list[None] = []

    def raises(x: Tensor) -> Tensor:
        calls.append(None)
        if len(calls) > LATE:
            msg = "enough for today\nand tomorrow"
            raise ValueError(msg)
        return x * 3

    row = native_row(subject, raises)
    assert (row.status, row.reason) == ("raises", "ValueError: enough for today")
