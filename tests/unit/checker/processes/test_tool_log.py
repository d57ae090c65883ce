"""The step to which a report belongs, and the reports that are about the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opwright.checker.job import Job, Options
from opwright.checker.kinds import Kind
from opwright.checker.processes.tool_log import ToolLog

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.verdict import Failure

FIRST = {"step": "sample 1", "repro": "mine.f(x)"}
SECOND = {"step": "sample 1, size 40 as 17", "repro": "mine.f(y)"}


def report(line: int, kernel: str = "_Z4workPf", what: str = "Invalid __global__ read of size 4 bytes") -> str:
    where = f"=========     at {kernel}+0x70 in /ops/mine/cuda.cu:{line}\n" if line else ""
    where = where or f"=========     at {kernel}+0x70\n"
    return f"========= {what}\n{where}=========     by thread (0,0,0) in block (0,0,0)\n=========\n"


def failed_call(module: str, error: str = "cudaErrorInvalidValue (error 1)") -> str:
    call = f'========= Program hit {error} due to "invalid argument" on CUDA API call to cudaLaunchKernel.\n'
    return f"{call}=========         Host Frame: f() [0x8ccb] in {module}\n=========\n"


class Written:
    """A log, and the tool that writes it."""

    def __init__(self, folder: Path, tool: str, **job: Any) -> None:
        self.path = folder / "worker.log"
        given: dict[str, Any] = {"namespace": "mine", "path": "/ops/mine/op.py", "cells": [], "work": str(folder)}
        given |= {"shared_object": "/cache/mine.so", "kernels": ["_Z4workPf"], "options": Options(tool=tool)}
        self.log = ToolLog(Job(**{**given, **job}), self.path)

    def write(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    def fault(self) -> Failure:
        """The fault, which there must be."""
        found = self.log.fault()
        assert found is not None
        return found


@pytest.fixture
def memcheck(tmp_path: Path) -> Written:
    return Written(tmp_path, "memcheck")


def test_a_report_belongs_to_the_step_in_which_it_was_written(memcheck: Written) -> None:
    memcheck.log.begin(FIRST)
    memcheck.write("========= COMPUTE-SANITIZER\n")
    memcheck.log.begin(SECOND)
    memcheck.write(report(31))
    memcheck.log.begin({"step": "sample 1, size 40 as 18", "repro": "mine.f(z)"})
    memcheck.write(report(31))
    failure = memcheck.fault()
    assert failure.kind is Kind.MEMCHECK
    assert failure.case == SECOND["step"]
    assert failure.repro.endswith("compute-sanitizer --tool memcheck --padding 512 python FILE\nmine.f(y)")
    assert failure.got.startswith("Invalid __global__ read of size 4 bytes at cuda.cu:31, in the kernel work(float*)")
    assert failure.expected == "no report by memcheck"


def test_without_a_report_there_is_no_fault(memcheck: Written) -> None:
    assert memcheck.log.fault() is None  # there is no file either
    memcheck.log.begin(FIRST)
    memcheck.write("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n")
    assert memcheck.log.fault() is None
    assert memcheck.log.troubles() == []


def test_limits_of_the_tool_are_reported_with_its_name(memcheck: Written) -> None:
    memcheck.write("========= COMPUTE-SANITIZER\n========= Error: Device not supported.\n")
    assert memcheck.log.troubles() == ["memcheck: Error: Device not supported."]
    assert memcheck.log.fault() is None


def test_a_report_before_the_first_step_is_a_fault_too(memcheck: Written) -> None:
    memcheck.write(report(31))
    assert (memcheck.fault().case, memcheck.fault().repro) == ("before the first case", "")


def test_other_places_are_listed_but_not_other_threads(memcheck: Written) -> None:
    memcheck.log.begin(FIRST)
    memcheck.write("".join(map(report, [31, 31, *range(50, 65)])))
    detail = memcheck.fault().detail
    listed = [line for line in detail.splitlines() if line.startswith("also: ")]
    assert len(listed) == 10
    assert "at cuda.cu:50, in the kernel work(float*)" in listed[0]
    assert detail.endswith("\nand 5 more")


def test_a_failed_cuda_call_counts_if_the_library_made_it(memcheck: Written) -> None:
    memcheck.log.begin(FIRST)
    memcheck.write(failed_call("/torch/lib/libtorch_cuda.so"))
    assert memcheck.log.fault() is None
    memcheck.write(failed_call("/cache/mine.so"))
    assert memcheck.fault().got.startswith("Program hit cudaErrorInvalidValue (error 1)")


def test_a_cuda_call_that_fails_because_a_kernel_was_stopped_is_not_the_fault(memcheck: Written) -> None:
    memcheck.log.begin(FIRST)
    memcheck.write(failed_call("/cache/mine.so", "cudaErrorLaunchFailure (error 719)") + report(31))
    failure = memcheck.fault()
    assert failure.got.startswith("Invalid __global__ read")
    assert "cudaErrorLaunchFailure" not in failure.detail


def test_initcheck_reports_about_pytorchs_kernels_do_not_count(tmp_path: Path) -> None:
    what = "Uninitialized __global__ memory read of size 4 bytes"
    initcheck = Written(tmp_path, "initcheck")
    initcheck.log.begin(FIRST)
    initcheck.write(report(0, "_ZN2at6native4copyEPf", what))
    assert initcheck.log.fault() is None
    initcheck.write(report(40, "_ZN3own6deviceEv", what))  # a function of the library's source that is not inlined
    failure = initcheck.fault()
    assert failure.kind is Kind.INITCHECK
    assert "at cuda.cu:40" in failure.got
