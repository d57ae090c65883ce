"""Cells in separate processes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from opwright.checker.job import Job, Options
from opwright.checker.kinds import Kind
from opwright.checker.processes import run_job as run_job_module
from opwright.checker.processes.run_job import (
    _after_death,
    _attributed,
    _failure,
    _is_explained,
    _Process,
    _Progress,
    run_job,
)
from opwright.checker.processes.verdicts import Verdicts
from opwright.checker.verdict import Cell, Failure
from opwright.errors import LoadError
from opwright.toolchain.run import Completed
from opwright.toolchain.signals import ending
from tests.interpreter import server
from tests.unit.checker.conftest import RecordingWatcher, job_of

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.spec import Library
    from tests.unit.conftest import Describe

pytestmark = pytest.mark.usefixtures("forked")

CELLS = [
    ("chatty", "trace"),
    ("dies_on_17", "eager"),
    ("ended_by_a_signal", "script"),
    ("fine", "trace"),
    ("fine", "no_such_runtime"),
    ("leaves", "trace"),
    ("has_no_samples", "trace"),
    ("fine", "script"),
]
# The references serve as kernels, and in the judge's process as references, where they must not fail.
WORKER = {"RUNS_OPERATORS": "1"}
DIE = """
def die(number):
    if "RUNS_OPERATORS" in os.environ:
        os.kill(os.getpid(), number)
"""
OPERATORS = f"""{DIE}
@library.op
def fine(x: Tensor) -> Tensor:
    return x + 1

@library.op
def chatty(x: Tensor) -> Tensor:
    os.write(1, b"a kernel prints without an end")
    print("and so does Python", end="", flush=True)
    return x + 1

@library.op
def dies_on_17(x: Tensor) -> Tensor:
    if x.shape[:1] == (17,):
        os.write(2, b"a last word\\n")
        die(signal.SIGSEGV)
    return x + 1

@library.op
def ended_by_a_signal(x: Tensor) -> Tensor:
    die(signal.SIGABRT)
    return x + 1

@library.op
def endless(x: Tensor) -> Tensor:
    while "RUNS_OPERATORS" in os.environ:
        time.sleep(0.1)
    return x + 1

@library.op
def leaves(x: Tensor) -> Tensor:
    if "RUNS_OPERATORS" in os.environ:
        os._exit(7)
    return x + 1

@library.op
def has_no_samples(x: Tensor) -> Tensor:
    return x

@fine.samples
@chatty.samples
@dies_on_17.samples
@endless.samples
@leaves.samples
def _(make):
    yield make.randn(40)

@ended_by_a_signal.samples
def _(make):
    yield make.randn(4)
    yield make.randn(5)
"""


@pytest.fixture(scope="module")
def library(describe: Describe) -> Library:
    return describe(OPERATORS)


Ran = tuple[RecordingWatcher, dict[tuple[str, str], Cell]]


@pytest.fixture(scope="module")
def ran(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    watched = RecordingWatcher()
    cells = run_job(job_of(library, CELLS, tmp_path_factory.mktemp("work")), "job", WORKER, watched, server())
    assert cells == watched.ended
    return watched, dict(zip(CELLS, cells, strict=True))


def test_every_cell_is_returned_in_order_regardless_of_the_others(ran: Ran, library: Library) -> None:
    watched, cells = ran
    names = [(f"{library.namespace}::{op}", runtime) for op, runtime in CELLS]
    assert [(cell.op, cell.runtime) for cell in cells.values()] == names
    # A cell starts once, regardless of the number of its processes.
    assert [begun[:2] for begun in watched.begun] == names
    assert cells["fine", "trace"].status == cells["fine", "script"].status == "passed"


def test_the_output_of_an_operator_does_not_hide_events(ran: Ran) -> None:
    watched, cells = ran
    assert cells["chatty", "trace"].status == "passed"
    assert cells["chatty", "trace"].cases > 1
    assert "sample 1, recorded" in watched.cases


def test_a_crash_costs_one_step_and_the_rest_of_the_cell_still_runs(ran: Ran) -> None:
    watched, cells = ran
    cell = cells["dies_on_17", "eager"]
    assert cell.status == "failed"
    assert cell.cases > 20
    assert [failure.kind for failure in cell.failures] == [Kind.CRASH], cell.failures
    (failure,) = cell.failures
    assert failure.case == "sample 1, size 40 as 17"
    assert failure.got == "the process was terminated by SIGSEGV"
    assert failure.expected == "a result, or an error"
    assert failure.detail.endswith("a last word")
    assert re.search(r"^x, = torch\.load\('.*\.pt'\)$", failure.repro, re.MULTILINE)
    assert watched.cases.index("sample 1, x with one more dimension") > watched.cases.index(failure.case)
    assert cell.reason == ""


def test_a_cell_that_crashes_repeatedly_is_abandoned(ran: Ran) -> None:
    cell = ran[1]["ended_by_a_signal", "script"]
    (failure,) = cell.failures
    assert failure.kind is Kind.CRASH
    assert failure.got == "the process was terminated by SIGABRT"
    assert (cell.status, cell.reason) == ("failed", "given up after 6 crashes")


def test_an_exit_code_is_named(ran: Ran) -> None:
    (failure,) = ran[1]["leaves", "trace"].failures
    assert failure.kind is Kind.EXIT
    assert failure.got == "the process exited with code 7"


def test_a_call_that_does_not_return_is_a_hang_and_its_stack_is_reported(library: Library, tmp_path: Path) -> None:
    waiting = job_of(library, [("endless", "script")], tmp_path, step_limit_s=4.0)
    (cell,) = run_job(waiting, "job", WORKER, RecordingWatcher(), server())
    (failure,) = cell.failures
    assert failure.kind is Kind.HANG
    assert failure.got == "not finished after 4 s"
    assert "in endless" in failure.detail


def test_after_a_hang_steps_have_a_shorter_limit(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_job_module, "_AFTER_A_HANG_S", 3.0)
    waiting = job_of(library, [("endless", "script"), ("endless", "trace")], tmp_path, step_limit_s=4.0)
    cells = run_job(waiting, "job", WORKER, RecordingWatcher(), server())
    assert [cell.failures[0].got for cell in cells] == ["not finished after 4 s", "not finished after 3 s"]


def test_an_error_of_the_check_itself_is_not_a_pass(ran: Ran) -> None:
    cell = ran[1]["fine", "no_such_runtime"]
    assert cell.status == "failed"
    (failure,) = cell.failures
    assert failure.kind is Kind.RUNTIME
    assert failure.got == "ModuleNotFoundError: No module named 'opwright.checker.runtimes.no_such_runtime'"
    assert "Traceback" in failure.detail


def test_an_operator_without_samples_gets_a_message_that_shows_what_to_write(ran: Ran) -> None:
    (failure,) = ran[1]["has_no_samples", "trace"].failures
    assert failure.kind is Kind.REFERENCE
    assert "has_no_samples has no samples: add them below it:\n\n@has_no_samples.samples\ndef _(make):" in failure.got


def test_many_crashes_in_one_group_do_not_hide_other_faults(describe: Describe, tmp_path: Path) -> None:
    library = describe(f"""{DIE}
@library.op
def dies_often(x: Tensor) -> Tensor:
    if x.dtype != torch.float32 or not x.is_contiguous():
        die(signal.SIGSEGV)
    if x.isnan().any():
        x.zero_()
    return x + 1

@dies_often.oracle
def _(x):
    return x + 1

@dies_often.samples
def _(make):
    yield make.randn(4, 5)
""")
    watched = RecordingWatcher()
    (cell,) = run_job(job_of(library, [("dies_often", "eager")], tmp_path), "job", WORKER, watched, server())
    assert cell.status == "failed"
    kinds = {failure.kind for failure in cell.failures}
    assert kinds == {Kind.CRASH, Kind.INDEX_OVERFLOW, Kind.WRITES_INPUT}
    tried = set(watched.cases)
    assert {"sample 1 in float64", "sample 1 in float16"} <= tried
    assert "sample 1 in bfloat16" not in tried
    assert re.fullmatch(
        r"cases skipped because similar ones crash: \d+ \(bad dtype of x, dtype, strides of x\)",
        cell.reason,
    )


@pytest.mark.parametrize(
    ("crashes", "given_up"),
    [
        ({"groups": [""] * 5, "skip": ["step"] * 5}, False),
        ({"groups": [""] * 6, "skip": ["step"] * 6}, True),
        ({"groups": ["dtype"] * 39, "skip": ["step"] * 39}, False),
        ({"groups": ["dtype"] * 40, "skip": ["step"] * 40}, True),
        ({"groups": ["dtype"], "skip": ["step"], "hangs": 1}, False),
        ({"groups": ["dtype"] * 2, "skip": ["step"] * 2, "hangs": 2}, True),
    ],
)
def test_a_cell_is_abandoned_when_no_group_explains_its_crashes(
    tmp_path: Path, crashes: dict[str, Any], given_up: bool
) -> None:
    empty = Job("none", "op.py", None, [], Options(), str(tmp_path))
    assert _Progress(Verdicts(empty), empty, **crashes).exceeds_limits == given_up


def test_a_library_that_does_not_open_is_reported(library: Library, tmp_path: Path) -> None:
    refused = job_of(library, [("fine", "trace")], tmp_path, namespace="another")
    with pytest.raises(LoadError, match=r"describes the library 'described_\w+', but the check expects 'another'"):
        run_job(refused, "job", WORKER, RecordingWatcher(), server())


def test_an_error_of_pytorch_while_opening_the_library_is_reported(describe: Describe, tmp_path: Path) -> None:
    library = describe("""
@library.op
def f(x: Tensor) -> Tensor:
    return x + 1

@f.vmap
def _(info, in_dims, x):
    return x + 1, 0

def refuse(*args, **kwargs):
    raise RuntimeError("PyTorch does not like it")

if "RUNS_OPERATORS" in os.environ:
    torch.library.register_vmap = refuse
""")
    with pytest.raises(LoadError, match="RuntimeError: PyTorch does not like it\nTraceback"):
        run_job(job_of(library, [("f", "trace")], tmp_path), "job", WORKER, RecordingWatcher(), server())


@pytest.mark.parametrize(
    ("kind", "case", "is_explained"),
    [
        (Kind.WRONG_RESULT, "sample 1", True),
        (Kind.LATE, "sample 2", True),
        (Kind.WRONG_RESULT, "sample 2", False),
        (Kind.SPECIAL_VALUES, "sample 1, x with NaN", False),
    ],
)
def test_a_wrong_first_call_of_a_sample_that_is_always_wrong_is_not_a_race(
    kind: Kind, case: str, *, is_explained: bool
) -> None:
    cell = Cell("ns::f", "eager", "cpu", "failed", failures=(Failure(kind, case),))
    assert _is_explained(Failure(Kind.RACE, "sample 1, first caller 2"), cell) is is_explained
    assert not _is_explained(Failure(Kind.EXIT, case), cell)


@pytest.mark.parametrize(
    ("kind", "got", "others", "attributed"),
    [
        (Kind.CRASH, "the process was terminated by SIGSEGV", (), Kind.RACE),
        (Kind.HEAP, "the process was terminated by SIGABRT", (Kind.RACE,), Kind.RACE),
        (Kind.CRASH, "the process was terminated by SIGSEGV", (Kind.OUT_OF_BOUNDS,), Kind.CRASH),
        (Kind.CRASH, f"the process {ending(-9)}", (), Kind.CRASH),
        (Kind.EXIT, "the process exited with code 3", (), Kind.EXIT),
        (Kind.HANG, "not finished after 2 s", (), Kind.HANG),
    ],
)
def test_first_calls_that_end_the_process_are_a_race_if_other_calls_show_no_fault(
    kind: Kind, got: str, others: tuple[Kind, ...], attributed: Kind
) -> None:
    cell = Cell("ns::f", "eager", "cpu", "failed", failures=tuple(map(Failure, others)))
    assert _attributed(Failure(kind, "sample 1: first calls", got=got), cell).kind is attributed


def test_a_kill_from_outside_is_not_attributed_to_the_step() -> None:
    killed = _failure({"step": "sample 1", "crash": "freed-memory"}, -9, "", None)
    assert killed.kind is Kind.CRASH
    assert killed.got == "the process was terminated by SIGKILL from outside, as when memory runs out"
    assert _failure({"step": "sample 1", "crash": "freed-memory"}, -11, "", None).kind is Kind.FREED


@pytest.mark.parametrize("step", [{"event": "begin"}, {"step": "search", "crash": "reference"}])
@pytest.mark.parametrize(
    ("exit_code", "words"),
    [(-11, "was terminated by SIGSEGV"), (-8, "was terminated by SIGFPE"), (3, "exited with code 3")],
)
def test_a_process_that_ends_before_it_calls_the_operator_is_the_fault_of_the_reference(
    step: dict[str, str], exit_code: int, words: str
) -> None:
    ended = _failure(step, exit_code, "", None)
    assert ended.kind is Kind.REFERENCE
    assert ended.case == step.get("step", "before the first case")
    assert (ended.got, ended.expected) == (
        f"the process that runs the reference {words}",
        "a reference that returns a result or raises",
    )
    killed = _failure(step, -9, "", None)
    assert (killed.kind, killed.got[:12]) == (Kind.CRASH, "the process ")


def test_a_process_that_ends_before_the_first_cell_was_opening_the_library() -> None:
    output = f"what():  Mismatch in kernel C++ signatures{'frame ' * 1000}end"
    failure = _failure({}, -6, output, None)
    assert (failure.kind, failure.case) == (Kind.LOAD, "while the library was being opened")
    assert failure.detail.startswith("what():  Mismatch in kernel C++ signatures")
    assert failure.detail.endswith("end")
    assert len(failure.detail) < len(output)


def test_a_fault_that_makes_a_process_unusable_is_attributed_to_its_step(library: Library, tmp_path: Path) -> None:
    given = job_of(library, [("fine", "eager")], tmp_path)
    progress = _Progress(Verdicts(given), given)
    process = _Process(given, "job", RecordingWatcher(), progress)
    progress.step = {"step": "sample 1", "repro": "f(x)", "group": ""}
    fault = Failure(Kind.GPU_FAULT, "sample 1", "f(x)", "an illegal memory access", "none")
    process._follow({"event": "unusable", "fault": fault.to_json()})
    found = _after_death(given, Completed("", "", 1), process, RecordingWatcher(), progress)
    assert (found, progress.crashes, progress.skip) == (fault, [fault], ["sample 1"])
