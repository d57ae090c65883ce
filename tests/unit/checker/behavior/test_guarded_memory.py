"""Tests of operators that access invalid memory: the process crashes in the step that names the fault."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from opwright.checker.kinds import Kind
from tests.interpreter import python

if TYPE_CHECKING:
    from tests.unit.conftest import Describe

OPERATOR = """
@library.op
def f(x: Tensor) -> Tensor:
    {}
    return x + 1

@f.samples
def _(make):
    yield make.randn(5, 7)
    yield make.randn(40, dtype=torch.float64)[3::2]
"""
PROGRAM = """
import json, sys
from pathlib import Path
from opwright.checker.behavior.guarded_memory import check_guarded_memory
from opwright.checker.job import Options
from opwright.checker.recorder import Recorder
from opwright.checker.subject import Subject
from opwright.loader.open import open_library
from opwright.spec import library_at
library = library_at(sys.argv[1])
open_library(library)
recorder = Recorder("f", "eager", "cpu", lambda event: print(json.dumps(event), flush=True))
check_guarded_memory(Subject(library.ops["f"], None, "cpu", Options(quick=True), Path(sys.argv[1])), recorder)
print(json.dumps({"step": "done", "failures": len(recorder.cell().failures)}), flush=True)
"""


def ran(describe: Describe, body: str) -> tuple[int, list[dict[str, Any]]]:
    """Check this operator in a process; return its exit code and its steps."""
    folder = describe(OPERATOR.format(body)).root
    words = [*python(), "-c", PROGRAM, str(folder)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_correct_operator_completes_every_step(describe: Describe) -> None:
    exit_code, steps = ran(describe, "pass")
    assert exit_code == 0
    assert steps[-1] == {"step": "done", "failures": 0}
    places = ["before a page", "after a page", "in read-only memory"]
    assert [step["step"] for step in steps[:6]] == [
        f"sample {number}: its arguments {place}" for number in (1, 2) for place in places
    ]
    # Other values may lead to other addresses.
    assert any(re.search(r", x (of|plus|times|with) .*: its arguments", step["step"]) for step in steps)


def test_an_operator_that_raises_completes_every_step(describe: Describe) -> None:
    exit_code, steps = ran(describe, "if x.is_contiguous() and x.shape[0] == 5: raise ValueError('not 5')")
    assert (exit_code, steps[-1]["step"]) == (0, "done")


@pytest.mark.parametrize(
    ("body", "step", "kind"),
    [
        ("x.add_(1).sub_(1)", "sample 1: its arguments in read-only memory", Kind.WRITES_INPUT),
        ("if x.dim() == 1: x.mul_(1)", "sample 2: its arguments in read-only memory", Kind.WRITES_INPUT),
        (
            "torch.empty(0).set_(x.untyped_storage(), x.storage_offset() + x.numel(), (1,)).clone()",
            "sample 1: its arguments before a page",
            Kind.OUT_OF_BOUNDS,
        ),
        (
            "if x.data_ptr() and x.data_ptr() % 4096 == 0: import ctypes; ctypes.string_at(x.data_ptr() - 4, 4)",
            "sample 1: its arguments after a page",
            Kind.OUT_OF_BOUNDS,
        ),
    ],
    ids=["written and restored", "another sample", "past the end", "before the start"],
)
def test_an_invalid_access_crashes_the_process_in_a_step_that_names_the_fault(
    describe: Describe, body: str, step: str, kind: Kind
) -> None:
    exit_code, steps = ran(describe, body)
    assert exit_code == -signal.SIGSEGV
    assert (steps[-1]["step"], steps[-1]["crash"]) == (step, kind.value)
    assert "torch.ops." in steps[-1]["repro"]


def test_an_invalid_access_at_some_values_crashes_the_process(describe: Describe) -> None:
    body = "if x.data_ptr() and x.abs().max() > 100: import ctypes; ctypes.string_at(x.data_ptr() + x.nbytes, 4)"
    exit_code, steps = ran(describe, body)
    assert exit_code == -signal.SIGSEGV
    assert steps[-1]["crash"] == Kind.OUT_OF_BOUNDS.value
    assert "sample 2, x" in steps[-1]["step"]


def test_writing_to_a_result_is_not_a_fault(describe: Describe) -> None:
    exit_code, steps = ran(describe, "result = x.clone().add_(1).sub_(1)")
    assert (exit_code, steps[-1]["step"]) == (0, "done")
