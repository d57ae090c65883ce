"""Tests of calls that behave differently in a forked process than in its parent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opwright.checker.behavior.forked import check_forked
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from tests.unit.checker.behavior.conftest import RunChecks
    from tests.unit.checker.conftest import MakeSubject

TEXT = """
import os
home = os.getpid()
@library.op
def f(x: Tensor) -> Tensor:
    if os.getpid() != home and {}
    return x + 1

@f.samples
def _(make):
    yield make.randn(40)
"""


@pytest.mark.parametrize(
    ("where_forked", "got"),
    [
        ("x.numel(): return x + 2", "float32 (40,), at [0]: "),
        ("x.numel(): raise ValueError('no threads here')", "ValueError: no threads here"),
        ("x.numel(): os._exit(3)", "the process exited during the call, with exit code 3"),
    ],
)
def test_a_difference_in_a_forked_process_is_found(
    make_subject: MakeSubject, failures: RunChecks, where_forked: str, got: str
) -> None:
    subject = make_subject(TEXT.format(where_forked), quick=True)
    subject.path = Path("as if it had native code.so")
    (failure,) = failures(subject, check_forked)
    assert failure.kind is Kind.FORKED
    assert failure.got.startswith(got)
    assert "os.fork()" in failure.repro


def test_the_same_result_in_a_forked_process_passes(make_subject: MakeSubject, failures: RunChecks) -> None:
    subject = make_subject(TEXT.format("False: pass"), quick=True)
    subject.path = Path("as if it had native code.so")
    assert failures(subject, check_forked) == ()
