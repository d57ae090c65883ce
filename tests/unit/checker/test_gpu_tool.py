"""The command line of a process that runs under a tool of compute-sanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwright.builder.plan import Plan
from opwright.checker.gpu_tool import TOOLS, again, command, with_lines
from tests.unit.checker.conftest import install_compute_sanitizer

LOG = Path("/logs/100%/worker-0.log")


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    return install_compute_sanitizer(tmp_path)


def option(words: list[str], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words else None


@pytest.mark.parametrize("tool", TOOLS)
def test_the_process_runs_under_the_tool_which_writes_reports_to_the_file(tool: str, program: Path) -> None:
    words = command(tool, LOG, ["_Z4workPf"])
    assert words[:3] == [str(program), "--tool", tool]
    assert option(words, "--log-file") == "/logs/100%%/worker-0.log"  # a single % starts an escape
    assert option(words, "--target-processes") == "application-only"
    assert option(words, "--demangle") == "no"


@pytest.mark.parametrize("tool", TOOLS)
def test_only_the_librarys_kernels_are_checked_except_by_initcheck(tool: str) -> None:
    words = command(tool, LOG, ["_Z4workPf", "plain"])
    filters = [words[at + 1] for at, word in enumerate(words) if word == "--kernel-name"]
    assert filters == ([] if tool == "initcheck" else ["kne=_Z4workPf", "kne=plain"])


def test_too_many_kernel_names_for_a_command_line_are_omitted() -> None:
    assert "--kernel-name" not in command("racecheck", LOG, [f"_Z4work{at}" for at in range(5000)])


def test_memcheck_separates_adjacent_allocations() -> None:
    assert option(command("memcheck", LOG, []), "--padding") == "512"
    assert [tool for tool in TOOLS if "--padding" in command(tool, LOG, [])] == ["memcheck"]


def test_kernels_are_still_optimized_and_have_line_information() -> None:
    plan = with_lines(Plan(name="mine", sources=(Path("cuda.cu"),), abi="stable", cuda_cflags=("--use_fast_math",)))
    assert plan.cuda_cflags == ("--use_fast_math", "-lineinfo")
    assert plan.cflags == plan.ldflags == ()


def test_a_repro_shows_how_to_run_it_under_the_tool() -> None:
    first, second = again("memcheck", "f(x)").splitlines()
    assert first.startswith("# ")
    assert "PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck --padding 512 python FILE" in first
    assert second == "f(x)"
