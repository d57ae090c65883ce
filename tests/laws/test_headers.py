"""Every C++ header compiles alone, without warnings, with every installed compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

HEADERS = Path(__file__).parents[2] / "src/opwright/include"
NAMES = sorted(str(header.relative_to(HEADERS)) for header in HEADERS.rglob("*.h"))
TORCH = Path(torch.__file__).parent / "include"
FLAGS = ("-std=c++20", "-DTORCH_TARGET_VERSION=0x020b000000000000", "-isystem", str(TORCH), "-I", str(HEADERS))
STRICT = ("-Wall", "-Wextra", "-Werror", "-fsyntax-only")


def third_party(header: str) -> list[str]:
    """Returns the include paths of the third-party package that a header supports."""
    if header != "opwright/opencv.h":
        return []
    done = subprocess.run(["pkg-config", "--cflags-only-I", "opencv4"], capture_output=True, text=True, check=True)
    return [word for path in done.stdout.split() for word in ("-isystem", path.removeprefix("-I"))]


def nvcc() -> str:
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    return shutil.which("nvcc") or next(path for home in homes if home and Path(path := f"{home}/bin/nvcc").exists())


def with_marks(header: str, *marks: str) -> object:
    bridges = {"opwright/opencv.h": ("opencv",)}
    needed = (*marks, *bridges.get(header, ()))
    return pytest.param(header, marks=[pytest.mark.needs(*needed)] if needed else [])


def compile_alone(header: str, folder: Path, *command: str) -> str:
    """Compiles a file with two inclusions of a header; returns the compiler's output."""
    source = folder / "alone.cpp"
    source.write_text(f"#include <{header}>\n#include <{header}>\n")
    done = subprocess.run(
        [*command, *FLAGS, *third_party(header), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.sample(5)
@pytest.mark.compiles
@pytest.mark.parametrize("header", [with_marks(name) for name in NAMES])
def test_a_header_compiles_alone_without_a_warning(header: str, tmp_path: Path) -> None:
    assert compile_alone(header, tmp_path, "g++", *STRICT) == ""


@pytest.mark.sample(5)
@pytest.mark.compiles
@pytest.mark.parametrize("header", [with_marks(name, "clang") for name in NAMES])
def test_a_header_compiles_alone_with_clang(header: str, tmp_path: Path) -> None:
    assert compile_alone(header, tmp_path, "clang++", *STRICT) == ""


@pytest.mark.sample(1)
@pytest.mark.compiles
@pytest.mark.parametrize("header", [with_marks(name, "nvcc") for name in ("opwright/op.h", "opwright/empty.h")])
def test_a_header_compiles_alone_as_cuda(header: str, tmp_path: Path) -> None:
    # These two include every other header that a CUDA source may need, including opwright/check.h.
    compile_alone(header, tmp_path, nvcc(), "-x", "cu", "-DUSE_CUDA", "-c", "-o", str(tmp_path / "alone.o"))


def test_the_table_of_definitions_includes_no_torch_header() -> None:
    includes = {
        line
        for header in ("schema.h", "visibility.h")
        for line in (HEADERS / "opwright" / header).read_text().splitlines()
        if line.startswith("#include")
    }
    assert [line for line in includes if "torch" in line or "opwright" in line] == ["#include <opwright/visibility.h>"]
