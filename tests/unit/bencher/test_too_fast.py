from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest

from opwright.bencher.contents import Contents
from opwright.bencher.floor import floor_of
from opwright.bencher.timer import Timing
from opwright.bencher.too_fast import ratio_to_floor, too_fast
from tests.unit.bencher.conftest import draws_of

if TYPE_CHECKING:
    from opwright.bencher.result import Direction
    from opwright.bencher.subject import Subject
    from tests.unit.bencher.conftest import MakeSubject

ADDED = """
@library.op
def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y

@added.samples
def _(make):
    yield make.randn(50, 20), make.randn(50, 20)
"""
STATED = """
@added.floor("the bare sum")
def _(x, y):
    return x + y
"""
LOOKED_UP = """
@library.op(differentiable=("table",))
def looked_up(table: Tensor, rows: Tensor) -> Tensor:
    one_hot = rows[:, None] == torch.arange(len(table))
    return one_hot.to(table) @ table

@looked_up.samples
def _(make):
    yield make.randn(10_000, 8), make.randint(0, 10_000, 3)
"""
SUMMED = """
@library.op
def summed(x: Tensor) -> Tensor:
    return x.sum()

@summed.samples
def _(make):
    yield (make.randn(1000),)
"""


def timing(seconds: float, *, processors: float = 1.0, rounds: int = 9) -> Timing:
    return Timing((seconds,) * rounds, 1, "", (processors * seconds,) * rounds)


def reason(subject: Subject, of_row: Timing, of_floor: Timing, direction: Direction = "forward") -> str:
    floor = floor_of(Contents(subject, draws_of(subject)), direction)
    return too_fast(subject, direction, floor, of_row, of_floor)


def test_less_than_half_of_the_time_of_the_floor_is_a_fault(make_subject: MakeSubject) -> None:
    for text, what in ((ADDED, "a copy that moves 11.7 KiB"), (ADDED + STATED, "the bare sum")):
        subject = make_subject(text)
        found = reason(subject, timing(40e-6), timing(100e-6))
        assert found == (
            f"faster than the floor: 40.0 µs, which is 0.400 of the time of {what}: the work is done elsewhere or "
            "later, or results are reused. If the operator needs less work than that, state its floor with "
            "@added.floor"
        )
        assert reason(subject, timing(60e-6), timing(100e-6)) == ""


def test_a_floor_that_is_dominated_by_call_overhead_is_not_compared(make_subject: MakeSubject) -> None:
    assert reason(make_subject(ADDED), timing(1e-6), timing(19e-6)) == ""


def test_a_floor_that_is_dominated_by_launches_is_not_compared(make_subject: MakeSubject) -> None:
    def on_gpu(host: float) -> Timing:
        return dataclasses.replace(timing(4e-5), host_times=(host,) * 9)

    assert reason(make_subject(ADDED), timing(1e-5), on_gpu(2.5e-5)) == ""
    assert "faster than the floor" in reason(make_subject(ADDED), timing(1e-5), on_gpu(1e-5))


def test_a_row_is_too_fast_only_if_most_rounds_are() -> None:
    floor = timing(1.0, rounds=8)
    mixed = Timing((0.1,) * 5 + (0.9,) * 3, 1, "")
    assert ratio_to_floor(mixed, floor, with_processor=False) > 0.5
    assert ratio_to_floor(timing(0.1, rounds=8), floor, with_processor=False) == pytest.approx(0.1)


def test_a_row_that_uses_more_threads_than_the_floor_may_be_faster(make_subject: MakeSubject) -> None:
    assert reason(make_subject(ADDED), timing(25e-6, processors=4), timing(100e-6)) == ""
    assert ratio_to_floor(timing(25e-6, processors=4), timing(100e-6), with_processor=False) == pytest.approx(0.25)
    assert ratio_to_floor(timing(25e-6, processors=0.1), timing(100e-6), with_processor=True) == pytest.approx(0.25)


def test_an_operator_that_reads_only_some_of_its_arguments_may_be_faster_than_a_copy(make_subject: MakeSubject) -> None:
    subject = make_subject(LOOKED_UP)
    assert reason(subject, timing(1e-6), timing(100e-6)) == ""
    arguments = {name: tensor.clone() for name, tensor in subject.arguments.items()}
    assert all(bool((subject.arguments[name] == tensor).all()) for name, tensor in arguments.items())


def test_the_gradient_of_a_sum_may_be_faster_than_a_copy_but_the_sum_may_not(make_subject: MakeSubject) -> None:
    # PyTorch expands it from a single element.
    subject = make_subject(SUMMED)
    assert reason(subject, timing(1e-6), timing(100e-6), "backward") == ""
    assert re.match(r"faster than the floor: 1\.00 µs", reason(subject, timing(1e-6), timing(100e-6)))
