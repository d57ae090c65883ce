"""Faster builds have the same results: common functions, precompiled headers, no C++ frontend."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import opwright
from opwright.builder import ninja
from opwright.builder.compile import build_plan
from opwright.builder.library import build_described
from opwright.builder.plan import plan_sources
from opwright.builder.recipes import COMMON_SOURCE
from opwright.cache.cache import Cache
from opwright.errors import BuildError
from opwright.loader.shared_object import import_module
from opwright.toolchain.run import Completed, run
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Sequence

OP = """
import opwright
from torch import Tensor
library = opwright.Library("quick", sources=["cpu.cpp"])
@library.op
def double(x: Tensor) -> Tensor:
    return x * 2
"""
KERNEL = """
#include <opwright/op.h>
#include <opwright/check.h>
#include <opwright/empty.h>
#include "factor.h"
opwright::Tensor twice(const opwright::Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::Tensor result = opwright::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = FACTOR * from[i];
    return result;
}
OPWRIGHT_IMPL(quick, CPU, m) { m.impl("double", OPWRIGHT_FN(twice)); }
"""
RUN = """
import sys, torch
torch.ops.load_library(sys.argv[1])
x = torch.arange(4.)
print(torch.ops.quick.double(x).tolist())
try:
    torch.ops.quick.double(x.int())
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MAX_JOBS", raising=False)
    return Cache()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "quick"
    folder.mkdir()
    (folder / "op.py").write_text(OP)
    (folder / "cpu.cpp").write_text(KERNEL)
    (folder / "factor.h").write_text("#pragma once\n#define FACTOR 2\n")
    return folder


def outcome(path: Path) -> list[str]:
    done = subprocess.run([*python(), "-c", RUN, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def built(folder: Path) -> tuple[set[str], Path]:
    """The names of the sources that a build compiled, and its product."""
    artefact = build_described(folder)[1]
    return {source.name for source in artefact.compiled}, artefact.path


def precompiled(cache: Cache) -> list[Path]:
    return sorted(cache.root.rglob("*.gch"))


def test_common_functions_are_compiled_once_for_all_libraries(cache: Cache, folder: Path) -> None:
    assert built(folder)[0] == {"definitions.cpp", COMMON_SOURCE.name, "cpu.cpp"}
    other = folder.with_name("other")
    shutil.copytree(folder, other)
    (other / "op.py").write_text(OP.replace('"quick"', '"other"'))
    (other / "cpu.cpp").write_text(KERNEL.replace("OPWRIGHT_IMPL(quick", "OPWRIGHT_IMPL(other"))
    assert built(other)[0] == {"definitions.cpp", "cpu.cpp"}


@pytest.mark.sample(of="precompiled headers")
def test_headers_are_precompiled_during_one_build_and_used_by_the_next(
    cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    built(folder)
    assert precompiled(cache) == []  # three sources for two processors
    (folder / "cpu.cpp").write_text(KERNEL + "\nstatic int unused_one = 1;\n")
    built(folder)
    assert len(precompiled(cache)) == 1
    (folder / "factor.h").write_text("#pragma once\n#define FACTOR 3\n")
    ran = outcome(built(folder)[1])
    assert ran == ["[0.0, 3.0, 6.0, 9.0]", "x must be float32, got int32: convert it with .to(torch.float32)"]


@pytest.mark.sample(of="precompiled headers")
def test_an_object_is_the_same_with_precompiled_headers(
    cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    _, first = built(folder)
    assert len(precompiled(cache)) == 1
    objects = sorted((cache.root / "objects").iterdir())
    for file in [*objects, *(cache.root / "recipes").glob("*.json")]:
        if "gch" not in file.read_text(errors="replace"):
            file.unlink()
    assert built(folder)[0] >= {"cpu.cpp"}
    assert outcome(built(folder)[1]) == outcome(first)


@pytest.mark.sample(of="precompiled headers")
def test_a_changed_opwright_header_invalidates_precompiled_ones(
    cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    headers = tmp_path / "headers"
    shutil.copytree(opwright.include_path(), headers)
    monkeypatch.setattr("opwright.toolchain.flags.include_path", lambda: headers)
    monkeypatch.setattr("opwright.builder.recipes.COMMON_SOURCE", headers / "opwright/common/common.cpp")
    built(folder)
    assert len(precompiled(cache)) == 1
    check = headers / "opwright/common/check.inc"
    check.write_text(check.read_text().replace(" must be ", " has to be "))
    op = headers / "opwright/op.h"
    op.write_text(op.read_text() + "\ninline int added_to_op_h() { return 5; }\n")
    (folder / "factor.h").write_text("#pragma once\n#define FACTOR added_to_op_h()\n")
    assert outcome(built(folder)[1]) == [
        "[0.0, 5.0, 10.0, 15.0]",
        "x has to be float32, got int32: convert it with .to(torch.float32)",
    ]


@pytest.mark.sample(of="precompiled headers")
@pytest.mark.parametrize(
    "before", ["#define OPWRIGHT_COMMON_ELSEWHERE_2 1\n", "#if 1\n", "#undef NDEBUG\n", '#include "sets.h"\n']
)
def test_nothing_is_precompiled_after_a_directive(
    cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (folder / "sets.h").write_text("#pragma once\n#define SETS 1\n")
    after = "\n#endif\n" if before.startswith("#if") else ""
    (folder / "cpu.cpp").write_text(before + KERNEL + after)
    built(folder)
    assert precompiled(cache) == []


@pytest.mark.sample(of="precompiled headers")
def test_nothing_is_precompiled_if_only_one_compiler_may_run(
    cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setenv("MAX_JOBS", "1")
    built(folder)
    assert precompiled(cache) == []


EXTENSION = """
#include <torch/extension.h>
at::Tensor f(at::Tensor x) { return %s; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }
"""


def extension(tmp_path: Path, cache: Cache, expression: str) -> Path:
    source = tmp_path / "extension.cpp"
    source.write_text(EXTENSION % expression)
    return build_plan(plan_sources("extension", [source], cflags=["-O0"]), cache=cache).path


@pytest.fixture
def without_frontend(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether ninja compiles without the frontend, for each of its runs."""
    seen: list[bool] = []

    def recorded(command: Sequence[str], **options: Any) -> Completed:
        build_file = Path(command[command.index("-C") + 1]) / ninja.FILE_NAME
        seen.append("without_frontend" in build_file.read_text())
        return run(command, **options)

    monkeypatch.setattr("opwright.builder.ninja.run", recorded)
    return seen


@pytest.mark.sample(of="PyTorch's headers")
def test_an_extension_is_compiled_without_the_frontend(
    tmp_path: Path, cache: Cache, without_frontend: list[bool]
) -> None:
    path = extension(tmp_path, cache, "x * 2")
    assert without_frontend == [True]
    assert import_module("extension", path)[0].f(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.sample(of="PyTorch's headers")
def test_an_extension_that_needs_the_frontend_is_compiled_with_it(
    tmp_path: Path, cache: Cache, without_frontend: list[bool]
) -> None:
    path = extension(tmp_path, cache, "x * static_cast<double>(torch::ExpandingArray<3>(1)->size())")
    assert without_frontend == [True, False]
    assert import_module("extension", path)[0].f(torch.ones(2)).tolist() == [3, 3]


@pytest.mark.sample(of="PyTorch's headers")
@pytest.mark.sample(of="PyTorch's headers")
@pytest.mark.parametrize(
    "declaration",
    [
        "struct Doubled : torch::autograd::Function<Doubled> {};",  # named, so included
        "static auto registered = torch::RegisterOperators();",
        "PyObject* nothing() { return nullptr; }",
        "void parallel() { at::parallel_for(0, 1, 1, [](int64_t, int64_t) {}); torch::NoGradGuard guard; }",
    ],
)
def test_parts_that_a_source_names_are_declared(
    tmp_path: Path, cache: Cache, without_frontend: list[bool], declaration: str
) -> None:
    source = tmp_path / "named.cpp"
    source.write_text(f"#include <torch/extension.h>\n#include <torch/script.h>\n{declaration}\n")
    build_plan(plan_sources("named", [source], cflags=["-O0"]), cache=cache)
    assert without_frontend == [True]


@pytest.mark.sample(of="PyTorch's headers")
def test_an_error_in_the_authors_code_is_not_compiled_again(
    tmp_path: Path, cache: Cache, without_frontend: list[bool]
) -> None:
    with pytest.raises(BuildError, match=r"tensr. was not declared in this scope") as raised:
        extension(tmp_path, cache, "tensr")
    assert without_frontend == [True]
    assert "without_frontend" not in str(raised.value)
