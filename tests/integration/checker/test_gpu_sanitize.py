"""CUDA kernels under the tools of compute-sanitizer: faults that no result shows, their correct twins, and ops/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_library
from opwright.builder.symbols import cuda_kernels
from opwright.cache.cache import Cache
from opwright.checker.gpu_tool import TOOLS, with_lines
from opwright.checker.kinds import Kind
from opwright.spec import library_at

if TYPE_CHECKING:
    from opwright.checker.verdict import Report

ROOT = Path(__file__).parents[3]
TRAPS = ROOT / "tests/packages/sanitize_traps"
# Each trap with the tool that detects its fault, and the line of cuda.cu that the report names.
EXPECTED = {
    "row_end": ("memcheck", "if (start + i <= columns)"),
    "warp_tail": ("racecheck", "partial[thread] = partial[thread] + partial[thread + half];"),
    "padding": ("initcheck", "if (at < padded)"),
    "barrier_in_branch": ("synccheck", "__syncthreads();"),
}
on_a_gpu = pytest.mark.needs("cuda", "nvcc", "compute_sanitizer")


def checked(path: Path, *tools: str) -> Report:
    return opwright.check(path, devices=["cuda"], sanitize=tools, quick=True, seed=0)


def faults(report: Report) -> list[tuple[str, str, str]]:
    cells = [(cell.op, fault.case, fault.got) for cell in report.cells for fault in cell.failures]
    return [*cells, *(("", fault.case, fault.got) for fault in report.failures)]


@on_a_gpu
@pytest.mark.parametrize("name", EXPECTED)
def test_a_fault_that_no_result_shows_is_reported_with_its_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, text = EXPECTED[name]
    monkeypatch.setenv("OPWRIGHT_TRAP", "faulty")
    report = checked(TRAPS / name, tool)
    assert report.kinds == {Kind(tool)}, faults(report)
    (failure,) = next(cell for cell in report.cells if cell.failures).failures
    lines = (TRAPS / name / "cuda.cu").read_text(encoding="utf-8").splitlines()
    places = {number for number, line in enumerate(lines, 1) if text in line}
    assert {int(found) for found in re.findall(r"cuda\.cu:(\d+)", failure.got)} & places, failure
    assert "in the kernel" in failure.got
    assert f"compute-sanitizer --tool {tool}" in failure.repro


@on_a_gpu
@pytest.mark.parametrize("name", EXPECTED)
def test_no_tool_reports_the_correct_twin(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "repaired")
    report = checked(TRAPS / name, *TOOLS)
    assert report.passed, faults(report)


@on_a_gpu
@pytest.mark.parametrize("name", ["lltm", "geometry"])
def test_no_tool_reports_the_kernels_of_ops(name: str) -> None:
    report = checked(ROOT / "ops" / name, *TOOLS)
    assert report.passed, faults(report)
    notes = [cell.reason for cell in report.cells if cell.status == "passed"]
    assert all("under compute-sanitizer, only the samples and" in note for note in notes)


@on_a_gpu
@pytest.mark.parametrize("name", EXPECTED)
def test_a_plain_check_does_not_detect_the_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "faulty")
    report = opwright.check(TRAPS / name, devices=["cuda"], runtimes=["eager"], quick=True, seed=0)
    assert report.passed, faults(report)


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_the_kernels_of_a_library_are_found_in_its_shared_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "repaired")
    cache = Cache()
    plan = with_lines(plan_library(library_at(TRAPS / "padding"), cache, cuda=True))
    first, second = cuda_kernels(build_plan(plan, cache=cache).path)
    assert re.fullmatch(r"_ZN\d+_GLOBAL__N__\w+7squaresEPKfPfll", first)
    assert re.fullmatch(r"_ZN\d+_GLOBAL__N__\w+7sums_ofEPKfPfll", second)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_twins_of_a_trap_differ_in_one_place(name: str) -> None:
    assert (TRAPS / name / "cuda.cu").read_text(encoding="utf-8").count("#ifdef FAULTY") == 1
    assert (TRAPS / name / "faulty.cu").read_text(encoding="utf-8") == '#define FAULTY\n#include "cuda.cu"\n'


@pytest.mark.parametrize("name", EXPECTED)
def test_the_reference_of_a_trap_accepts_its_samples(name: str) -> None:
    (op,) = library_at(TRAPS / name).ops.values()
    samples = list(op.draw(opwright.Make()))
    assert len(samples) >= 2
    for sample in samples:
        positional, keywords = op.spread(op.bind(sample))
        assert op.reference(*positional, **keywords).numel()
