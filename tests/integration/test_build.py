"""Builds with a real compiler: what is compiled again, and what an error shows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.builder.compile import Artefact, build_plan, copy_to
from opwright.builder.plan import plan_sources
from opwright.cache.cache import Cache
from opwright.errors import BuildError
from tests.integration.conftest import write, write_program
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
#include <torch/csrc/stable/library.h>
#include "answer.h"
int64_t answer() { return ANSWER; }
STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("answer() -> int"); }
STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CompositeExplicitAutograd, m) { m.impl("answer", TORCH_BOX(&answer)); }
"""


@pytest.fixture
def folder(folder: Path) -> Path:
    return write(folder, {"answer.h": "#define ANSWER 42\n", "a.cpp": SOURCE, "b.cpp": "int b() { return 1; }\n"})


def _build(folder: Path, *cflags: str, name: str = "mine") -> Artefact:
    plan = plan_sources(name, [folder / "a.cpp", folder / "b.cpp"], cflags=["-O0", "-DNAMESPACE=built", *cflags])
    return build_plan(plan, cache=Cache())


def _compiled(artefact: Artefact) -> set[str]:
    return {source.name for source in artefact.compiled}


def test_only_what_changed_is_compiled_again(folder: Path) -> None:
    first = _build(folder)
    assert _compiled(first) == {"a.cpp", "b.cpp"}
    assert _compiled(_build(folder)) == set()

    (folder / "b.cpp").write_text("int b() { return 2; }\n")
    assert _compiled(_build(folder)) == {"b.cpp"}

    (folder / "answer.h").write_text("#define ANSWER 43\n")
    changed = _build(folder)
    assert _compiled(changed) == {"a.cpp"}
    assert changed.path != first.path
    assert first.path.is_file()  # a process may have it open

    assert _compiled(_build(folder, "-DOTHER")) == {"a.cpp", "b.cpp"}

    (folder / "answer.h").write_text("#define ANSWER 42\n")
    (folder / "b.cpp").write_text("int b() { return 1; }\n")
    again = _build(folder)
    assert _compiled(again) == set()
    assert again.path == first.path


def test_another_pytorch_or_compiler_causes_another_build(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.cpp").write_text("int a() { return 1; }\n")
    _build(folder)
    wrapper = write_program(folder / "g++", f'exec {shutil.which("g++")} "$@"')
    monkeypatch.setenv("CXX", str(wrapper))
    assert _compiled(_build(folder)) == {"a.cpp", "b.cpp"}
    monkeypatch.setattr("opwright.toolchain.pytorch.PyTorch.identity", ["another"])
    assert _compiled(_build(folder)) == {"a.cpp", "b.cpp"}


def test_a_compile_error_shows_the_location_and_the_command_and_caches_nothing(folder: Path) -> None:
    (folder / "b.cpp").write_text("int b() {\n    return nowhere;\n}\n")
    with pytest.raises(BuildError) as caught:
        _build(folder)
    message = str(caught.value)
    assert f"{folder / 'b.cpp'} does not compile:" in message
    assert f"{folder / 'b.cpp'}:2:12: error:" in message
    assert "nowhere" in message
    assert "-c " + str(folder / "b.cpp") in caught.value.command
    assert len(message.splitlines()) < 20
    cache = Cache().root
    assert not (cache / "libraries").exists()
    assert list((cache / "work").iterdir()) == []


def test_warnings_of_third_party_headers_are_suppressed_and_the_authors_own_are_kept(folder: Path) -> None:
    (folder / "a.cpp").write_text("#include <torch/csrc/stable/tensor.h>\nvoid a() { int unused; }\n")
    log = _build(folder, "-Wall", "-Wextra").log
    assert "unused variable" in log
    assert "torch/" not in log


def test_the_command_line_builds_copies_and_reports(folder: Path) -> None:
    (folder / "op.py").write_text(
        "import opwright\nfrom torch import Tensor\nlibrary = opwright.Library('cli_built', sources=['kernel.cpp'])\n"
        "@library.op\ndef f(x: Tensor) -> Tensor:\n    return x\n"
    )
    (folder / "kernel.cpp").write_text("#include <opwright/op.h>\n")
    target = folder / "out" / "libf.so"
    ended = subprocess.run(
        [*python(), "-m", "opwright", "build", str(folder), "-o", str(target), "--json", "-"],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(ended.stdout)
    assert result["path"] == str(target)
    assert result["operators"] == ["cli_built::f(Tensor x) -> Tensor"]
    assert result["abi"] == "stable"
    assert target.is_file()
    assert opwright.build(folder).is_file()


def test_the_error_for_an_unwritable_target_names_the_cached_build(folder: Path) -> None:
    (folder / "a.cpp").write_text("int a() { return 1; }\n")
    artefact = _build(folder)
    with pytest.raises(BuildError, match=r"b\.cpp/out\.so cannot be written: .*The build itself succeeded: .*mine\.so"):
        copy_to(artefact, folder / "b.cpp" / "out.so")
