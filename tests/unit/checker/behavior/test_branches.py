"""Tests of calls in which an option selects a different branch than in the samples."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.behavior.branches import branches
from opwright.checker.behavior.later import check_later
from opwright.checker.behavior.repetition import check_repetition
from opwright.checker.behavior.threads import check_threads
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder

if TYPE_CHECKING:
    from torch import Tensor

    from tests.unit.checker.behavior.conftest import RunChecks
    from tests.unit.checker.conftest import MakeSubject

SCALED = """
@library.op
def f(x: Tensor, mode: str = "plain", twice: bool = False, by: float | None = None, times: int = 1) -> Tensor:
    if mode not in ("plain", "kept"):
        raise ValueError("mode must be plain or kept")
    return x * (2 if twice else 1) * (1.0 if by is None else by) * times

@f.samples
def _(make):
    yield make.randn(6)
    yield make.randn(5)
"""


def recorder(skip: frozenset[str] = frozenset()) -> Recorder:
    return Recorder("f", "eager", "cpu", lambda _: None, skip)


def test_each_flag_string_and_none_that_the_reference_accepts_has_one_case(make_subject: MakeSubject) -> None:
    subject = make_subject(SCALED)
    found = branches(subject, recorder())
    assert {(case.argument, case.arguments[case.argument]) for case in found} == {("mode", "kept"), ("twice", True)}
    (first, _) = found
    assert [case.argument for case in branches(subject, recorder(frozenset({first.name})))] != ["mode", "twice"]


def test_a_quick_check_has_no_branches(make_subject: MakeSubject) -> None:
    assert branches(make_subject(SCALED, quick=True), recorder()) == []


def in_one_buffer(x: Tensor, buffers: dict[int, Tensor]) -> Tensor:
    return buffers.setdefault(len(x), torch.empty_like(x)).copy_(x)


def by_address(x: Tensor, results: dict[int, Tensor]) -> Tensor:
    return results.setdefault(x.data_ptr(), x.clone())


def through_one_buffer(x: Tensor, buffers: dict[int, Tensor]) -> Tensor:
    buffer = in_one_buffer(x, buffers)
    time.sleep(1e-3)
    return buffer.clone()


@pytest.mark.parametrize(
    ("check", "remember", "kind"),
    [
        (check_repetition, in_one_buffer, Kind.STATE),
        (check_later, by_address, Kind.STATE),
        (check_threads, through_one_buffer, Kind.RACE),
    ],
)
def test_state_in_only_one_branch_is_found(
    make_subject: MakeSubject, failures: RunChecks, check: Any, remember: Any, kind: Kind
) -> None:
    subject = make_subject(SCALED)
    kept: dict[int, Tensor] = {}

    def f(x: Tensor, mode: str = "plain", *options: Any) -> Any:
        result = subject.op.reference(x, mode, *options)
        return remember(x, kept) if mode == "kept" else result

    subject.overload = f
    (fault,) = failures(subject, check)
    assert (fault.kind, "mode" in fault.case) == (kind, True)
