"""Builds with clang++ under any name: just in time and with CMake."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
from opwright.errors import BuildError, SignatureError
from tests.conftest import clang
from tests.integration.conftest import write, write_program
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Cmake

pytestmark = pytest.mark.needs("any_clang")

SOURCE = """
#include <opwright/op.h>
int64_t twice(int64_t x) { return 2 * x; }
OPWRIGHT_LIBRARY(by_clang, m) { m.def("twice", OPWRIGHT_FN(twice)); }
"""
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(by_clang LANGUAGES CXX)
find_package(opwright REQUIRED)
opwright_add_library(by_clang SOURCES kernel.cpp)
"""


def answer(library: Path) -> str:
    program = f"import torch; torch.ops.load_library({str(library)!r}); print(torch.ops.by_clang.twice(21))"
    return subprocess.run([*python(), "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """clang++ under an unrelated name, which logs each of its starts to a file."""
    program = write_program(folder / "compile", f'echo "$@" >> {folder}/started\nexec {clang()} "$@"')
    monkeypatch.setenv("CXX", str(program))
    (folder / "kernel.cpp").write_text(SOURCE)
    return program


def test_a_library_built_by_clang_runs_and_is_found_without_starting_clang(compiler: Path) -> None:
    plan = plan_sources("by_clang", [compiler.with_name("kernel.cpp")])
    first = build_plan(plan)
    assert answer(first.path) == "42\n"
    started = compiler.with_name("started")
    assert "-fno-gnu-unique" not in started.read_text()
    started.unlink()
    assert build_plan(plan).path == first.path
    assert not started.exists()


def test_a_clang_error_shows_a_command_that_clang_accepts(compiler: Path) -> None:
    compiler.with_name("kernel.cpp").write_text("int f() { return nowhere; }\n")
    with pytest.raises(BuildError, match=r"kernel\.cpp:1:18: error: use of undeclared identifier 'nowhere'") as caught:
        build_plan(plan_sources("by_clang", [compiler.with_name("kernel.cpp")]))
    assert str(compiler) in caught.value.command
    assert "-fno-gnu-unique" not in caught.value.command


def test_a_difference_between_schema_and_kernel_is_reported_in_one_sentence(compiler: Path) -> None:
    source = SOURCE.replace('"twice"', '"twice(float x) -> int"')
    compiler.with_name("kernel.cpp").write_text(source)
    differ = (
        r"4:\d+: error: the schema and the kernel differ: parameter 0, the schema says float, the kernel takes int64_t,"
    )
    with pytest.raises(SignatureError, match=differ) as caught:
        build_plan(plan_sources("by_clang", [compiler.with_name("kernel.cpp")]))
    assert "use double\n  written: twice(float x) -> int\n  kernel:  twice\n" in str(caught.value)


@pytest.mark.needs("cmake")
def test_cmake_builds_with_clang(compiler: Path, cmake: Cmake) -> None:
    source = write(compiler.with_name("project"), {"CMakeLists.txt": PROJECT, "kernel.cpp": SOURCE})
    build = compiler.with_name("build")
    done = cmake(source, build, f"-DCMAKE_CXX_COMPILER={clang()}")
    assert done.returncode == 0, done.stdout
    assert answer(build / "libby_clang.so") == "42\n"
