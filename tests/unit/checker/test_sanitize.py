from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from opwright.builder.plan import Plan
from opwright.checker import sanitize
from opwright.checker.sanitize import checked, environment, instrumented, report_in, tools_among
from opwright.errors import ToolchainError
from tests.unit.checker.conftest import install_compute_sanitizer

ADDRESS = """\
a kernel speaks
=================================================================
==4242==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000034
READ of size 4 at 0x602000000034 thread T0
    #0 0x7f in last(torch::stable::Tensor const&) /lib/mine/cpu.cpp:3
"""
UNDEFINED = (
    "/lib/mine/cpu.cpp:7:14: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented\n    #0 f"
)
THREAD = "==================\nWARNING: ThreadSanitizer: data race (pid=7)\n  Write of size 8 at 0x7f by thread T1:\n"


@pytest.mark.parametrize(
    ("output", "headline"),
    [
        (ADDRESS, "==4242==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000034"),
        (UNDEFINED, UNDEFINED.splitlines()[0]),
        (THREAD, "WARNING: ThreadSanitizer: data race (pid=7)"),
    ],
)
def test_a_report_starts_with_its_headline(output: str, headline: str) -> None:
    found, report = report_in(output)
    assert found == headline
    assert report == "\n".join(output[output.index(headline) :].splitlines())


def test_the_output_of_kernels_is_not_a_report() -> None:
    assert report_in("a runtime error\nERROR: something else") == ("", "")


def test_a_long_report_is_truncated() -> None:
    assert len(report_in(ADDRESS + "    #1 0x7f in more\n" * 100)[1].splitlines()) == 40


def test_an_unknown_sanitizer_is_reported_with_the_known_ones() -> None:
    known = "address, undefined, thread, memcheck, racecheck, initcheck, synccheck"
    with pytest.raises(ToolchainError, match=f"'adress' is unknown: expected one of {known}"):
        checked(("undefined", "adress"))


def test_the_address_and_thread_sanitizers_cannot_be_combined() -> None:
    with pytest.raises(ToolchainError, match="cannot be combined: run the check once with each"):
        checked(("thread", "address"))
    assert checked(("address", "undefined")) == ("address", "undefined")


def test_compiler_sanitizers_and_gpu_tools_cannot_be_combined() -> None:
    message = "address and memcheck, racecheck cannot be combined: .* Run the check once with each"
    with pytest.raises(ToolchainError, match=message):
        checked(("memcheck", "address", "racecheck"))


def test_a_tool_that_is_passed_twice_runs_once() -> None:
    assert tools_among(("memcheck", "synccheck", "memcheck")) == ("memcheck", "synccheck")
    assert tools_among(("address", "undefined")) == ()


def test_a_gpu_tool_requires_a_cuda_build_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize, "find_pytorch", lambda: SimpleNamespace(cuda=None))
    with pytest.raises(ToolchainError, match="memcheck checks CUDA kernels, but this PyTorch is a CPU build"):
        checked(("memcheck",))


def test_a_gpu_tool_requires_compute_sanitizer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sanitize, "find_pytorch", lambda: SimpleNamespace(cuda="13.0"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    install_compute_sanitizer(tmp_path)
    assert checked(("memcheck", "synccheck")) == ("memcheck", "synccheck")
    assert environment(("memcheck", "synccheck")) == {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    plan = Plan(name="mine", sources=(Path("cuda.cu"),), abi="stable")
    assert instrumented(plan, ("memcheck",)).cuda_cflags == ("-lineinfo",)


def test_a_plan_is_instrumented_for_compiling_and_linking() -> None:
    plan = instrumented(
        Plan(name="mine", sources=(Path("cpu.cpp"),), abi="stable", cflags=("-O3",)), ("address", "undefined")
    )
    assert plan.cflags[0] == "-O3"
    assert "-fsanitize=address,undefined" in plan.cflags
    assert "-O1" in plan.cflags[1:]
    assert plan.ldflags == ("-fsanitize=address,undefined",)


def test_the_sanitizers_runtime_libraries_are_loaded_first() -> None:
    preloaded = environment(("address", "undefined"))["LD_PRELOAD"].split()
    assert [Path(library).name.partition(".")[0] for library in preloaded] == ["libasan", "libubsan"]
    assert all(Path(library).is_file() for library in preloaded)


def test_a_compiler_without_sanitizers_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "g++ (GCC) 14.0" || echo "${1#-print-file-name=}"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(ToolchainError, match=r"does not provide libtsan\.so: install your compiler's sanitizers"):
        environment(("thread",))
