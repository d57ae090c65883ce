"""compile_commands.json, written by `opwright build --compile-commands` and read by clangd."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opwright.scaffold.create import create
from opwright.scaffold.flavour import Flavour

if TYPE_CHECKING:
    from collections.abc import Sequence

OPWRIGHT = Path(sys.executable).with_name("opwright")
CLANGD = Path(sys.executable).with_name("clangd")
OP = """
import opwright
from torch import Tensor
library = opwright.Library("edited", sources=["src/kernel.cpp"], include_dirs=["include"], cflags=["-DANSWER=42"])
@library.op
def same(x: Tensor) -> Tensor:
    return x.clone()
"""
KERNEL = """
#include <edited/check.h>
#include "beside.h"
static_assert(ANSWER == 42);
"""
STABLE = """
#include <opwright/op.h>
opwright::Tensor same(const opwright::Tensor& x) { return checked(x); }
OPWRIGHT_IMPL(edited, CPU, m) { m.impl("same", OPWRIGHT_FN(same)); }
"""
FULL = """
#include <torch/library.h>
at::Tensor same(const at::Tensor& x) { return checked(x); }
TORCH_LIBRARY_IMPL(edited, CPU, m) { m.impl("same", &same); }
"""
SHARED = """
#pragma once
#include <cstdint>
__global__ void twice(const float* from, float* into, int64_t count) {
    const int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (at < count) into[at] = 2 * __ldg(from + at);
}
"""
MIXED = """
#include <cuda_runtime.h>
#include "shared.cuh"
void launch(const float* from, float* into, int64_t count, cudaStream_t stream) {
    twice<<<1, 32, 0, stream>>>(from, into, count);
}
"""


def build(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([OPWRIGHT, "build", *arguments], capture_output=True, text=True, check=False)


def entries(file: Path) -> dict[str, dict[str, Any]]:
    return {Path(entry["file"]).name: entry for entry in json.loads(file.read_text())}


def errors(file: Path) -> Sequence[str]:
    """The errors that clangd reports for a file, whose compile_commands.json it finds itself."""
    done = subprocess.run(
        [CLANGD, f"--check={file}", "--check-locations=false"], capture_output=True, text=True, check=False
    )
    assert "Compile command from CDB is" in done.stderr, done.stderr
    assert "All checks completed" in done.stderr, done.stderr
    return re.findall(r"^E\[.*?\] (\[\w+\] Line .*)$", done.stderr, flags=re.MULTILINE)


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    folder = tmp_path / "edited library"
    for name in ("src", "include/edited"):
        (folder / name).mkdir(parents=True)
    (folder / "op.py").write_text(OP)
    (folder / "include/edited/check.h").write_text(
        "#pragma once\ntemplate <class T> T checked(const T& x) { return x; }\n"
    )
    (folder / "src/beside.h").write_text("#pragma once\nstatic_assert(ANSWER == 42);\n")
    return folder


@pytest.mark.sample(of="long")
@pytest.mark.parametrize("text", [STABLE, FULL], ids=["stable", "full"])
def test_clangd_finds_every_header_of_every_file(edited: Path, text: str) -> None:
    (edited / "src/kernel.cpp").write_text(KERNEL + text)
    done = build(edited, "--compile-commands")
    database = edited / "compile_commands.json"
    assert done.stdout == f"{database}\n", done.stderr
    assert set(entries(database)) == {"kernel.cpp", "check.h", "beside.h"}
    for name in ("src/kernel.cpp", "src/beside.h", "include/edited/check.h"):
        assert errors(edited / name) == []
    (edited / "src/kernel.cpp").write_text(f"#include <edited/missing.h>\n{KERNEL}{text}")
    assert any("'edited/missing.h' file not found" in error for error in errors(edited / "src/kernel.cpp"))


def test_clangd_reports_a_kernel_that_differs_from_its_schema(edited: Path) -> None:
    (edited / "src/kernel.cpp").write_text(KERNEL + STABLE.replace('"same", OPWRIGHT', '"sane", OPWRIGHT'))
    assert build(edited, "--compile-commands").returncode == 0
    assert any("not a constant expression" in error for error in errors(edited / "src/kernel.cpp"))


@pytest.mark.needs("nvcc")
def test_no_command_has_a_flag_that_only_gcc_or_nvcc_supports(tmp_path: Path) -> None:
    folder = create(tmp_path / "for_gpus", Flavour.CUDA).folder
    found = {Path(entry["file"]).name: entry for entry in json.loads(build(folder, "--compile-commands", "-").stdout)}
    assert set(found) == {"cpu.cpp", "cuda.cu", "formulas.h", "tensors.h"}
    words = [word for entry in found.values() for word in entry["arguments"]]
    assert [word for word in words if re.match(r"-fno-gnu-unique|-Xcompiler|-gencode|-ccbin|--expt", word)] == []
    assert found["cuda.cu"]["arguments"][1:4] == ["-x", "cuda", "--cuda-host-only"]
    assert {"-DUSE_CUDA", "-fvisibility=hidden", "-std=c++20"} <= set(found["cuda.cu"]["arguments"])
    assert list(folder.glob("*.json")) == []


@pytest.mark.sample(of="long")
@pytest.mark.needs("nvcc")
def test_clangd_reads_cuda(edited: Path) -> None:
    text = f"#include <opwright/op.h>\n{MIXED}"
    (edited / "op.py").write_text(OP.replace("src/kernel.cpp", "src/kernel.cu"))
    (edited / "src/shared.cuh").write_text(SHARED)
    (edited / "src/kernel.cu").write_text(text)
    assert build(edited, "--compile-commands").returncode == 0
    for name in ("src/kernel.cu", "src/shared.cuh"):
        assert errors(edited / name) == []
    (edited / "src/kernel.cu").write_text(text.replace("twice<<<", "thrice<<<"))
    assert any("undeclared identifier 'thrice'" in error for error in errors(edited / "src/kernel.cu"))


def test_a_build_updates_a_database_that_opwright_wrote_but_no_other(edited: Path) -> None:
    (edited / "src/kernel.cpp").write_text(STABLE.replace("checked(x)", "x"))
    database = edited / "compile_commands.json"
    assert build(edited).returncode == 0
    assert not database.exists()
    build(edited, "--compile-commands")
    (edited / "op.py").write_text(OP.replace("ANSWER=42", "ANSWER=43"))
    assert build(edited).returncode == 0
    assert "-DANSWER=43" in entries(database)["kernel.cpp"]["arguments"]
    for other in ("[]", "no JSON", json.dumps([{"directory": "/", "file": "a.cpp", "command": "g++ -c a.cpp"}])):
        database.write_text(other)
        assert build(edited).returncode == 0
        assert database.read_text() == other


def test_a_library_without_native_sources_has_no_commands(tmp_path: Path) -> None:
    done = build(create(tmp_path / "of_python", Flavour.PYTHON_ONLY).folder, "--compile-commands")
    assert done.returncode == 3
    assert "of_python has no C++ or CUDA source, so there is no compile command to write" in done.stderr
