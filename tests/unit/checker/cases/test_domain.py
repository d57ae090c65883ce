"""Tests of calls outside the domain."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from opwright.checker.behavior.repetition import check_repetition
from opwright.checker.behavior.threads import check_threads
from opwright.checker.cases.case import Family
from opwright.checker.processes.worker import run_cell
from opwright.checker.runtimes import vmap
from opwright.errors import SpecError
from tests.unit.checker.conftest import MakeSubject, recorder_of_steps

if TYPE_CHECKING:
    from torch import Tensor

GATHER = """
@library.op(vmap=True)
def gather(x: Tensor, index: Tensor) -> Tensor:
    return x[index]

@gather.domain
def _(x, index):
    return bool(((index >= 0) & (index < x.shape[0])).all())

@gather.samples
def _(make):
    yield make.randn(12, 5), make.randint(0, 12, 7)
"""


def test_calls_outside_the_domain_are_counted_and_not_made(make_subject: MakeSubject) -> None:
    subject = make_subject(GATHER, quick=True)
    events: list[dict[str, Any]] = []
    run_cell(subject, "eager", frozenset(), events.append)
    cell = events[-1]["cell"]
    assert (cell["status"], cell["failures"]) == ("passed", [])
    assert re.search(r"\d+ variations are outside the domain declared in op\.py and were not called", cell["reason"])
    steps = {event["step"] for event in events if event["event"] == "step"}
    assert "sample 1, dimension 0 of x one longer" in steps
    assert "sample 1, x with one fewer dimension" not in steps  # 5 rows: some indices are outside


def test_calls_are_batched_only_inside_the_domain(make_subject: MakeSubject) -> None:
    text = GATHER.replace("bool(((index >= 0) & (index < x.shape[0])).all())", "bool((index == x[0, 0]).all())")
    draw = "    value = make.randint(0, 12, 1)\n    yield value.float().expand(12, 5) * 1, value.expand(7) * 1\n"
    text = text.replace("    yield make.randn(12, 5), make.randint(0, 12, 7)\n", draw)
    recorder, steps = recorder_of_steps("vmap")
    vmap.run(make_subject(text), recorder)
    assert recorder.cell().failures == ()
    assert not [step for step in steps if "share" in step]
    assert [step for step in steps if "batches in front" in step]


ASCENDING = """
@library.op
def f(x: Tensor) -> Tensor:
    return x + 1

@f.domain
def _(x):
    return bool((x.diff() >= 0).all())

@f.samples
def _(make):
    yield make.randn(40).sort().values
"""


@pytest.mark.parametrize("check", [check_repetition, check_threads])
def test_repeated_and_concurrent_calls_are_inside_the_domain(make_subject: MakeSubject, check: Any) -> None:
    subject = make_subject(ASCENDING, quick=True)
    outside: list[Tensor] = []

    def overload(x: Tensor) -> Tensor:
        if not bool((x.diff() >= 0).all()):
            outside.append(x)
        return x + 1

    subject.overload = overload
    recorder, steps = recorder_of_steps("eager")
    check(subject, recorder)
    assert steps
    assert recorder.cell().failures == ()
    assert outside == []


def test_a_sample_outside_the_domain_is_a_fault_of_the_description(make_subject: MakeSubject) -> None:
    subject = make_subject(GATHER.replace("randint(0, 12, 7)", "randint(12, 24, 7)"), quick=True)
    with pytest.raises(SpecError, match=r"sample 1 of \w+::gather is outside its domain: its @domain function returns"):
        _ = subject.samples


FINITE = """
@library.op
def scaled(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x * y * z

@scaled.domain
def _(x, y, z):
    return bool(x.isfinite().all())

@scaled.samples(dtypes=(torch.float64,))
def _(make):
    yield make.randn(4, 5), make.randn(4, 5), make.randn(4, 5)
"""


@pytest.mark.parametrize("dtype", ["", " in float64"])
def test_values_that_one_argument_excludes_are_tried_in_the_others(make_subject: MakeSubject, dtype: str) -> None:
    subject = make_subject(FINITE, quick=not dtype)
    start = f"sample 1{dtype}, "
    special = [case.name for case in subject.varied if case.family is Family.SPECIAL and case.name.startswith(start)]
    of_nan = {name.removeprefix(start)[:2] for name in special if "nan" in name.lower()}
    assert of_nan
    assert of_nan <= {"y ", "z "}
