"""Mutants of small libraries: those that a check notices, and those that are equivalent or do not compile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from opwright.checker.mutants.run import check_mutants
from opwright.cli.main import app
from opwright.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.mutants.score import MutationReport

pytestmark = pytest.mark.usefixtures("forked")

DESCRIPTION = """
import opwright
from torch import Tensor

library = opwright.Library("mutated", sources=["native/cpu.cpp"])

@library.op(differentiable=())
def shift(x: Tensor, by: float) -> Tensor:
    return (x + by).contiguous()

@shift.samples
def _(make):
    yield make.randn(5, 7), SAMPLE
"""
SOURCE = """
#include "shift.h"
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

opwright::Tensor shift(const opwright::Tensor& x, double by) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    const opwright::Tensor from = torch::stable::contiguous(x);
    opwright::Tensor result = torch::stable::empty_like(from);
    shift_all(from.const_data_ptr<float>(), result.mutable_data_ptr<float>(), from.numel(), static_cast<float>(by));
    return result;
}

OPWRIGHT_IMPL(mutated, CPU, m) { m.impl("shift", OPWRIGHT_FN(shift)); }
"""
HEADER = """
#include <cstdint>
inline void shift_all(const float* from, float* into, int64_t count, float by) {
    const int64_t none = count - count;
    for (int64_t i = 0; i < count; ++i) into[i] = from[i] + by;
    if (none > 3) into[0] = 0;
    int unused = 1;  // opwright: equivalent: nothing reads it
    (void)unused;
}
"""


def written(folder: Path, sample: str = "2.5") -> Path:
    (folder / "native").mkdir()
    (folder / "op.py").write_text(DESCRIPTION.replace("SAMPLE", sample))
    (folder / "native/cpu.cpp").write_text(SOURCE)
    (folder / "native/shift.h").write_text(HEADER)
    return folder


def fates(report: MutationReport) -> dict[str, str]:
    return {result.mutant.name: result.fate for result in report.results}


@pytest.mark.sample(of="long")
def test_mutants_have_every_kind_of_fate(tmp_path: Path) -> None:
    folder = written(tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    # Each mutant takes seconds.
    files = [folder / "native/shift.h"]
    report = check_mutants(folder, None, runtimes=["eager"], files=files, quick=True, seed=0)
    found = fates(report)
    assert found["shift.h:5: comparison: < -> <="] == "killed"
    assert found["shift.h:5: arithmetic: + -> -"] == "killed"
    assert found["shift.h:6: comparison: > -> >="] == "equivalent"  # the compiler proves that there is none
    assert found["shift.h:7: constant: 1 -> 2"] == "marked"
    assert report.possible == len(report.results)
    assert all(result.by_quick == (result.fate == "killed") for result in report.results)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    noticed = {result.mutant.name: result.noticed for result in report.results}
    assert noticed["shift.h:5: arithmetic: + -> -"] == "shift in eager: wrong-result (sample 1)"


@pytest.mark.sample(of="mutants")
def test_a_check_that_fails_without_a_change_is_rejected(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "op.py").write_text((folder / "op.py").read_text().replace("x + by", "x - by"))
    with pytest.raises(SpecError, match=r"mutated::shift fails in eager without a change \(wrong-result"):
        check_mutants(folder, 2, runtimes=["eager"], quick=True, seed=0)


def test_a_library_with_nothing_to_change_is_rejected(tmp_path: Path) -> None:
    text = DESCRIPTION.replace(', sources=["native/cpu.cpp"]', "").replace("SAMPLE", "1.0")
    (tmp_path / "op.py").write_text(text)
    with pytest.raises(SpecError, match=r"'mutated' has no code to change: expected native sources, or a kernel"):
        check_mutants(tmp_path)


KERNEL = """
@shift.kernel(device="cpu")
def _(x, by):
    if by < 0:
        pass
    return (x + by).contiguous()
"""


def with_python_kernel(folder: Path) -> Path:
    text = DESCRIPTION.replace(', sources=["native/cpu.cpp"]', "").replace("SAMPLE", "1.5") + KERNEL
    (folder / "op.py").write_text(text)
    return folder


@pytest.mark.sample(of="mutants")
def test_the_command_fails_if_no_sample_shows_a_change_of_a_python_kernel(tmp_path: Path) -> None:
    text = (with_python_kernel(tmp_path) / "op.py").read_text()
    options = ["--mutants", "500", "--quick", "--runtime", "eager", "--seed", "0", "--json", "-"]
    ended = CliRunner().invoke(app, ["check", str(tmp_path), *options])
    report = json.loads(ended.stdout)
    changes = {mutant["diff"].splitlines()[-1].strip("+ "): mutant["fate"] for mutant in report["mutants"]}
    assert ended.exit_code == 1
    assert changes["return (x - by).contiguous()"] == "killed"
    assert changes["if by <= 0:"] == "survived"
    assert (tmp_path / "op.py").read_text() == text


@pytest.mark.sample(of="mutants")
def test_a_mutant_that_a_quick_check_does_not_notice_gets_a_full_check(tmp_path: Path) -> None:
    folder = with_python_kernel(tmp_path)
    report = check_mutants(folder, None, runtimes=["export"], seed=0)
    changes = {result.mutant.diff().splitlines()[-1].strip("+ "): result for result in report.results}
    wrong = changes["return (x - by).contiguous()"]
    assert (wrong.fate, wrong.by_quick, wrong.noticed.partition(":")[0]) == ("killed", False, "shift in export")
    assert changes["if by <= 0:"].fate == "survived"


@pytest.mark.sample(of="mutants")
def test_a_full_check_that_fails_without_a_change_is_rejected(tmp_path: Path) -> None:
    folder = with_python_kernel(tmp_path)
    (folder / "op.py").write_text((folder / "op.py").read_text().replace("if by < 0", "x = x - 1\n    if by < 0"))
    with pytest.raises(SpecError, match=r"mutated::shift fails in export without a change \(wrong-result"):
        check_mutants(folder, 1, runtimes=["export"], seed=0)


@pytest.mark.sample(of="mutants")
def test_the_same_seed_chooses_the_same_mutants(tmp_path: Path) -> None:
    folder = with_python_kernel(tmp_path)
    chosen = [set(fates(check_mutants(folder, 2, runtimes=["eager"], quick=True, seed=5))) for _ in range(2)]
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("option", [["--large"], ["--sanitize", "address"], ["--fail-fast"], ["--junit", "a.xml"]])
def test_options_of_other_checks_are_rejected(tmp_path: Path, option: list[str]) -> None:
    ended = CliRunner().invoke(app, ["check", str(tmp_path), "--mutants", *option])
    assert ended.exit_code == 2
    assert f"--mutants excludes {option[0]}: leave one of them out." in ended.output


@pytest.mark.sample(of="mutants")
def test_only_the_given_files_are_changed(tmp_path: Path) -> None:
    folder = written(tmp_path)
    report = check_mutants(folder, 1, runtimes=["eager"], files=[folder / "native/shift.h"], quick=True, seed=0)
    assert {result.mutant.file.name for result in report.results} == {"shift.h"}
    with pytest.raises(SpecError, match=r"other\.h has no code to change: expected one of .*cpu\.cpp, .*shift\.h"):
        check_mutants(folder, 1, runtimes=["eager"], files=[folder / "native/other.h"], quick=True)


def test_file_requires_mutants(tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["check", str(tmp_path), "--file", "cpu.cpp"])
    assert ended.exit_code == 2
    assert "--file needs --mutants: a check without mutants changes no file." in ended.output
