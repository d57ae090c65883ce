"""The check of a recorded graph of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.recorder import Recorder
from opwright.checker.runtimes import trace

if TYPE_CHECKING:
    from tests.unit.checker.conftest import MakeSubject

OPERATOR = """
@library.op
def f(x: Tensor, scale: int) -> Tensor:
    return x * scale

@f.samples
def _(make):
    yield make.randn(4), {scale}
"""


@pytest.mark.parametrize(("scale", "is_run"), [("3", True), ("int(make.randint(0, 2**40, 1))", False)])
def test_a_graph_runs_on_other_numbers_only_if_its_constants_are_the_same(
    make_subject: MakeSubject, scale: str, *, is_run: bool
) -> None:
    steps: list[str] = []
    recorder = Recorder(
        "f", "trace", "cpu", lambda event: steps.append(event["step"]) if event["event"] == "step" else None
    )
    trace.run(make_subject(OPERATOR.format(scale=scale), quick=True), recorder)
    assert recorder.cell().failures == ()
    assert ("sample 1 with other numbers, run from the graph" in steps) is is_run
