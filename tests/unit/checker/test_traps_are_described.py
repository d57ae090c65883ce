"""The trap set says of each of its faults what it is and what a check should call it; nothing is built here."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from opwright.checker.kinds import Kind
from opwright.spec import Library, library_at

TRAPS = Path(__file__).parents[2] / "packages/traps"
EXPECTED: dict[str, dict[str, Any]] = json.loads((TRAPS / "expected.json").read_text(encoding="utf-8"))
FOLDERS = sorted(path.parent.name for path in TRAPS.glob("*/op.py"))
RUNTIMES = {"eager", "autograd", "compile", "vmap", "library"}
SWITCH = "OPWRIGHT_TRAP"
# A tensor that is kept needs a list to be kept in, an intrinsic its header, and a line that moves leaves its place.
IN_TWO_PLACES = {"leaked_tensor", "denormals_flushed", "wanted_weight_only"}


@pytest.fixture(params=FOLDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv(SWITCH, build)
    return library_at(TRAPS / name)


def test_the_set_is_large_enough_to_mean_something() -> None:
    assert len(FOLDERS) >= 156


def test_every_folder_has_its_row_and_every_row_its_folder() -> None:
    assert sorted(EXPECTED) == FOLDERS


def test_every_folder_is_a_library() -> None:
    assert [path.name for path in TRAPS.iterdir() if path.is_dir() and not (path / "op.py").is_file()] == []


def test_every_kind_that_is_named_exists(name: str) -> None:
    kinds = EXPECTED[name]["kind"]
    assert kinds
    assert {Kind(kind).value for kind in kinds} == set(kinds)


def test_the_runtime_and_the_fault_are_said(name: str) -> None:
    row = EXPECTED[name]
    assert row["runtime"] in RUNTIMES
    assert row["sentence"].endswith(".")
    assert set(row) <= {"kind", "runtime", "sentence", "source", "all", "full"}


def test_only_a_trap_with_several_faults_must_show_all_its_kinds(name: str) -> None:
    row = EXPECTED[name]
    assert row.get("all", False) == (name == "tutorial_style_op")
    assert len(row["kind"]) == 3 if row.get("all") else len(row["kind"]) <= 2


def test_the_fault_is_told_in_the_docstring(name: str) -> None:
    docstring = ast.get_docstring(ast.parse((TRAPS / name / "op.py").read_text(encoding="utf-8")))
    assert docstring is not None
    assert docstring.endswith(".")
    assert len(docstring.splitlines()) <= 2


def test_each_trap_has_a_namespace_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(name, "faulty", monkeypatch).namespace == f"trap_{name}"


def test_the_library_is_faulty_unless_the_repaired_twin_is_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    faulty, repaired = library_at(TRAPS / name), opened(name, "repaired", monkeypatch)
    sources = ["cpu.cpp"] if (TRAPS / name / "cpu.cpp").is_file() else []
    assert [source.name for source in repaired.sources] == sources
    assert [source.name for source in faulty.sources] == (["faulty.cpp"] if places(name, "cpu.cpp") else sources)
    # With equal flags, what the two have in common, their definitions, is compiled once.
    assert faulty.cflags == repaired.cflags


def test_the_twins_differ_in_one_place(name: str) -> None:
    assert places(name, "cpu.cpp") + places(name, "op.py") == (2 if name in IN_TWO_PLACES else 1)


def places(name: str, file: str) -> int:
    """How often the two twins part in a file."""
    path = TRAPS / name / file
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    set_or_passed_on = ("FAULTY = ", "library = ")
    return sum("FAULTY" in line for line in lines if not line.startswith(set_or_passed_on))


@pytest.mark.parametrize("build", ["faulty", "repaired"])
def test_every_operator_has_samples_that_its_reference_takes(
    name: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opwright.spec import Make, derive

    for op in opened(name, build, monkeypatch).ops.values():
        samples = list(op.draw(Make()))
        assert len(samples) >= 2
        for sample in samples:
            positional, keywords = op.spread(op.bind(sample))
            assert derive.tensors(op.reference(*positional, **keywords)) or op.mutates
