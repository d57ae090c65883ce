"""Tests that each trap describes its fault and the kind that a check should report; nothing is built here."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from opwright.checker.kinds import Kind
from opwright.spec import Library, Make, derive, library_at

TRAPS = Path(__file__).parents[2] / "packages/traps"
EXPECTED: dict[str, dict[str, Any]] = json.loads((TRAPS / "expected.json").read_text(encoding="utf-8"))
MEASURED = (Path(__file__).parents[3] / "docs/explanation/measured.md").read_text(encoding="utf-8")
FOLDERS = sorted(path.parent.name for path in TRAPS.glob("*/op.py"))
RUNTIMES = {"eager", "autograd", "compile", "vmap", "library"}
SWITCH = "OPWRIGHT_TRAP"
# These need a second place: a leaked tensor its list, an intrinsic its header, and a moved line its old position.
IN_TWO_PLACES = {"leaked_tensor", "denormals_flushed", "wanted_weight_only"}


@pytest.fixture(params=FOLDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv(SWITCH, build)
    return library_at(TRAPS / name)


def test_the_set_is_large_enough() -> None:
    assert len(FOLDERS) >= 156


def test_every_folder_has_a_row_and_every_row_a_folder() -> None:
    assert sorted(EXPECTED) == FOLDERS


def test_every_folder_is_a_library() -> None:
    assert [path.name for path in TRAPS.iterdir() if path.is_dir() and not (path / "op.py").is_file()] == []


def test_its_row_names_kinds_a_runtime_and_the_sentence_of_the_documentation(name: str) -> None:
    row = EXPECTED[name]
    assert set(row) <= {"kind", "runtime", "sentence", "source", "all", "full"}
    kinds = row["kind"]
    assert kinds
    assert {Kind(kind).value for kind in kinds} == set(kinds)
    # Only a trap with several faults must show all of its kinds.
    assert row.get("all", False) == (name == "tutorial_style_op")
    assert len(kinds) == 3 if row.get("all") else len(kinds) <= 2
    assert row["runtime"] in RUNTIMES
    assert f"| `{name}` | {row['sentence'].removesuffix('.')} |" in MEASURED


def test_its_twins_differ_in_one_place_and_the_faulty_one_is_the_default(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert places(name, "cpu.cpp") + places(name, "op.py") == (2 if name in IN_TWO_PLACES else 1)
    docstring = ast.get_docstring(ast.parse((TRAPS / name / "op.py").read_text(encoding="utf-8")))
    assert docstring is not None
    assert docstring.endswith(".")
    assert len(docstring.splitlines()) <= 2
    monkeypatch.delenv(SWITCH, raising=False)
    faulty, repaired = library_at(TRAPS / name), opened(name, "repaired", monkeypatch)
    assert faulty.namespace == repaired.namespace == f"trap_{name}"
    sources = ["cpu.cpp"] if (TRAPS / name / "cpu.cpp").is_file() else []
    assert [source.name for source in repaired.sources] == sources
    assert [source.name for source in faulty.sources] == (["faulty.cpp"] if places(name, "cpu.cpp") else sources)
    # With equal flags, the definitions that both have in common are compiled once.
    assert faulty.cflags == repaired.cflags


def places(name: str, file: str) -> int:
    """The number of places where the twins differ in a file."""
    path = TRAPS / name / file
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    set_or_passed_on = ("FAULTY = ", "library = ")
    return sum("FAULTY" in line for line in lines if not line.startswith(set_or_passed_on))


@pytest.mark.parametrize("build", ["faulty", "repaired"])
def test_every_operator_has_samples_that_its_reference_accepts(
    name: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for op in opened(name, build, monkeypatch).ops.values():
        samples = list(op.draw(Make()))
        assert len(samples) >= 2
        for sample in samples:
            positional, keywords = op.spread(op.bind(sample))
            assert derive.tensors(op.reference(*positional, **keywords)) or op.mutates
