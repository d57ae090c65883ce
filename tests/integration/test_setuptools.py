"""A real setup.py that builds op libraries, a pybind11 module and an ordinary extension side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from opwright.errors import SpecError
from tests.integration.conftest import write
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("setuptools")

OP = """
import opwright
from torch import Tensor
library = opwright.Library("from_library", sources=["kernel.cpp"])
@library.op
def answer(x: int) -> int:
    return x + 1
"""
KERNEL = """
#include <opwright/op.h>
int64_t answer(int64_t x) { return x + 1; }
OPWRIGHT_IMPL(from_library, CompositeExplicitAutograd, m) { m.impl("answer", OPWRIGHT_FN(answer)); }
"""
ALONE = """
#include <opwright/op.h>
#include "plus.h"
int64_t answer(int64_t x) { return x + PLUS; }
OPWRIGHT_LIBRARY(alone, m) { m.def("answer", OPWRIGHT_FN(answer)); }
"""
MODULE = """
#include <Python.h>
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "%s"};
PyMODINIT_FUNC PyInit_%s() { return PyModule_Create(&module); }
"""
SETUP = """
from setuptools import Extension, setup
from opwright.cpp_extension import BuildExtension, OpExtension

setup(
    name="packaged",
    packages=["packaged"],
    ext_modules=[
        OpExtension("packaged.from_library", library="ops"),
        OpExtension("packaged.alone", ["alone.cpp"], include_dirs=["headers"]),
        OpExtension("packaged.binding", ["binding.cpp"]),
        Extension("packaged.plain", ["plain.cpp"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""
USE = """
import sys, torch
sys.path.insert(0, sys.argv[1])
torch.ops.load_library(sys.argv[1] + "/packaged/from_library.so")
torch.ops.load_library(sys.argv[1] + "/packaged/alone.so")
import packaged.binding, packaged.plain
print(torch.ops.from_library.answer(1), torch.ops.alone.answer(1))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "ops/op.py": OP,
        "ops/kernel.cpp": KERNEL,
        "alone.cpp": ALONE,
        "headers/plus.h": "#define PLUS 2\n",
        "binding.cpp": MODULE % ("binding", "binding"),
        "plain.cpp": MODULE % ("plain", "plain"),
        "setup.py": SETUP,
        "packaged/__init__.py": "",
    }
    return write(tmp_path, files)


def _setup(project: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "setup.py", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.sample(of="setup.py")
def test_file_names_have_a_python_version_for_modules_but_not_for_operators(project: Path) -> None:
    ended = _setup(project, "-q", "build", "--build-lib", "out")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    built = {path.name.partition(".")[0]: path.name for path in (project / "out" / "packaged").glob("*.so")}
    assert built["from_library"] == "from_library.so"
    assert built["alone"] == "alone.so"
    assert "cpython" in built["binding"]
    assert "cpython" in built["plain"]
    used = subprocess.run(
        [*python(), "-c", USE, str(project / "out")], cwd="/", capture_output=True, text=True, check=False
    )
    assert used.stdout == "2 3\n", used.stderr


@pytest.mark.sample(of="setuptools releases")
def test_inplace_builds_are_next_to_the_package(project: Path, with_setuptools: dict[str, str]) -> None:
    ended = _setup(project, "-q", "build_ext", "--inplace", **with_setuptools)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    built = {path.name.partition(".")[0] for path in (project / "packaged").glob("*.so")}
    assert built == {"from_library", "alone", "binding", "plain"}


@pytest.mark.sample(of="setup.py")
def test_an_error_in_a_source_fails_the_build_with_its_location(project: Path) -> None:
    (project / "alone.cpp").write_text("#include <opwright/op.h>\nint f() { return nowhere; }\n")
    ended = _setup(project, "-q", "build_ext", "--inplace")
    assert ended.returncode != 0
    assert "alone.cpp:2:18: error:" in ended.stderr


def test_sources_and_library_are_mutually_exclusive() -> None:
    from opwright.cpp_extension import OpExtension

    with pytest.raises(SpecError, match=r"OpExtension\('x'\) requires either sources= or library="):
        OpExtension("x", ["a.cpp"], library="ops")
    with pytest.raises(SpecError, match="requires either sources= or library="):
        OpExtension("x")
