"""The check of a recorded graph of an operator."""

from __future__ import annotations

import pytest

from opwright.checker.runtimes import trace
from tests.unit.checker.conftest import MakeSubject, operator, recorder_of_steps


@pytest.mark.parametrize(("scale", "is_run"), [("3", True), ("int(make.randint(0, 2**40, 1))", False)])
def test_a_graph_runs_on_other_numbers_only_if_its_constants_are_the_same(
    make_subject: MakeSubject, scale: str, *, is_run: bool
) -> None:
    recorder, steps = recorder_of_steps("trace")
    text = operator("x: Tensor, scale: int", "x * scale", f"make.randn(4), {scale}")
    trace.run(make_subject(text, quick=True), recorder)
    assert recorder.cell().failures == ()
    assert ("sample 1 with other numbers, run from the graph" in steps) is is_run
