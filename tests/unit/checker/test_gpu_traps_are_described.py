"""Tests that each GPU trap describes its fault and the kind that a check should report; nothing is built here."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from opwright.checker.kinds import Kind
from opwright.spec import Make, derive, library_at

TRAPS = Path(__file__).parents[2] / "packages/gpu_traps"
EXPECTED: dict[str, dict[str, Any]] = json.loads((TRAPS / "expected.json").read_text(encoding="utf-8"))
FOLDERS = sorted(path.parent.name for path in TRAPS.glob("*/op.py"))


@pytest.fixture(params=FOLDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_folder_has_a_row_and_every_row_a_folder() -> None:
    assert sorted(EXPECTED) == FOLDERS
    assert len(FOLDERS) >= 12


def test_each_row_has_existing_kinds_and_a_sentence(name: str) -> None:
    row = EXPECTED[name]
    assert 1 <= len({Kind(kind) for kind in row["kind"]}) <= 2
    assert row["runtime"] in {"eager", "autograd"}
    assert row["sentence"].endswith(".")
    docstring = ast.get_docstring(ast.parse((TRAPS / name / "op.py").read_text(encoding="utf-8")))
    assert docstring is not None
    assert docstring.endswith(".")


def test_the_twins_are_two_sources_of_one_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPWRIGHT_TRAP", raising=False)
    faulty = library_at(TRAPS / name)
    monkeypatch.setenv("OPWRIGHT_TRAP", "repaired")
    repaired = library_at(TRAPS / name)
    assert faulty.namespace == repaired.namespace == f"gpu_trap_{name}"
    assert [source.name for source in (*faulty.sources, *repaired.sources)] == ["faulty.cu", "cuda.cu"]
    assert faulty.sources[0].read_text() != repaired.sources[0].read_text()


def test_every_operator_has_samples_that_its_reference_accepts(name: str) -> None:
    for op in library_at(TRAPS / name).ops.values():
        samples = list(op.draw(Make()))
        assert len(samples) >= 2
        for sample in samples:
            positional, keywords = op.spread(op.bind(sample))
            assert derive.tensors(op.reference(*positional, **keywords))
