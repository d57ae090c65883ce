"""A cell that runs under several tools: a script replaces compute-sanitizer, and the operator writes the reports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from opwright.checker.job import Options
from opwright.checker.kinds import Kind
from opwright.checker.run_under_tools import _merged, run_under_tools
from opwright.checker.verdict import Cell, Failure
from tests.unit.checker.conftest import RecordingWatcher, install_compute_sanitizer, job_of

if TYPE_CHECKING:
    from tests.unit.conftest import Describe

# Like compute-sanitizer, it exits with the exit code of the program that it runs.
PROGRAM = f"""#!/bin/sh
while [ "$1" != {sys.executable} ]; do
    [ "$1" = --tool ] && export TOOL=$2
    [ "$1" = --log-file ] && export REPORTS=$2
    shift
done
echo "========= COMPUTE-SANITIZER" > "$REPORTS"
exec "$@"
"""
OPERATOR = """
def report(headline):
    with open(os.environ["REPORTS"], "a") as file:
        file.write(f"========= {headline}\\n")
        file.write("=========     at _Z4workPf+0x70 in /ops/mine/cuda.cu:31\\n")
        file.write("=========     by thread (0,0,0) in block (0,0,0)\\n=========\\n")

@library.op
def careless(x: Tensor) -> Tensor:
    tool = os.environ.get("TOOL", "")
    if tool == "racecheck" and x.numel() == 7:
        report("Error: a race")
    if tool == "memcheck" and x.numel() == 7:
        report("Invalid __global__ read of size 4 bytes")
        os._exit(1)
    assert not tool or os.environ["SETTING"] == "1"
    if tool == "synccheck":
        raise RuntimeError("the GPU is lost")
    return x + 1

@careless.samples
def _(make):
    yield make.randn(4)
    yield make.randn(7)
"""
ENVIRONMENT = {"SETTING": "1"}


@pytest.fixture(scope="module")
def ran(describe: Describe, tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordingWatcher, Cell]:
    library = describe(OPERATOR)
    home = tmp_path_factory.mktemp("cuda")
    install_compute_sanitizer(home, PROGRAM)
    watched = RecordingWatcher()
    work, options = tmp_path_factory.mktemp("work"), Options(quick=True, reproduce=False)
    job = job_of(library, [("careless", "eager")], work, options=options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_HOME", str(home))
        return watched, run_under_tools(job, ("racecheck", "memcheck", "synccheck"), ENVIRONMENT, watched)


@pytest.mark.sample(of="long", by="file")
def test_several_runs_are_merged_into_one_cell(ran: tuple[RecordingWatcher, Cell]) -> None:
    watched, cell = ran
    assert watched.begun == [(cell.op, "eager", "cpu")]
    assert watched.ended == [cell]
    assert {case.partition(":")[0] for case in watched.cases} == {"racecheck", "memcheck", "synccheck"}
    assert cell.status == "failed"


@pytest.mark.sample(of="long", by="file")
def test_each_report_is_a_fault_of_its_kind_in_the_step_that_caused_it(ran: tuple[RecordingWatcher, Cell]) -> None:
    found = {failure.kind: failure for failure in ran[1].failures}
    assert found[Kind.RACECHECK].got.startswith("Error: a race at /ops/mine/cuda.cu:31, in the kernel work(float*)")
    # A process that stops at a report is not restarted.
    assert found[Kind.MEMCHECK].got.startswith("Invalid __global__ read of size 4 bytes at /ops/mine/cuda.cu:31")
    for tool in ("racecheck", "memcheck"):
        failure = found[Kind(tool)]
        assert failure.case == "sample 2"
        assert f"compute-sanitizer --tool {tool}" in failure.repro
        assert "careless(" in failure.repro


@pytest.mark.sample(of="long", by="file")
def test_an_error_without_a_report_is_a_fault_too(ran: tuple[RecordingWatcher, Cell]) -> None:
    failure = {failure.kind: failure for failure in ran[1].failures}[Kind.RAISES]
    assert failure.got == "RuntimeError: the GPU is lost"


@pytest.mark.sample(of="long", by="file")
def test_what_was_left_out_is_said(ran: tuple[RecordingWatcher, Cell]) -> None:
    assert ran[1].reason.count("under compute-sanitizer, only the samples and 6 of ") == 1
    assert "the other steps of the eager runtime were skipped" in ran[1].reason


def test_a_cell_passes_if_it_passes_under_all_tools() -> None:
    passed = Cell("mine::f", "eager", "cuda", "passed", "a note", cases=3, seconds=1.5)
    failed = Cell("mine::f", "eager", "cuda", "failed", cases=1, failures=(Failure(Kind.MEMCHECK),))
    absent = Cell("mine::f", "eager", "cuda", "not applicable", "no GPU")
    both = _merged([passed, passed])
    assert (both.status, both.cases, both.reason, both.seconds) == ("passed", 6, "a note", 3.0)
    assert _merged([passed, failed]).status == "failed"
    assert _merged([passed, failed]).failures == failed.failures
    assert _merged([absent, absent]) == absent
