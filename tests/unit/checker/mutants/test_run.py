from __future__ import annotations

from pathlib import Path

from opwright.checker.mutants.mutant import Change, Edit, Mutant
from opwright.checker.mutants.run import likeliest_first

CELLS = [(op, runtime, "cpu") for op in ("first", "second", "third") for runtime in ("eager", "script")]


def mutant(line: int, file: str = "cpu.cpp") -> Mutant:
    return Mutant(Path(file), line, 1, Edit(Change.CONSTANT, 0, 1, "2"), b"1")


def order(line: int, *kills: tuple[Mutant, str]) -> list[str]:
    found = likeliest_first(CELLS, mutant(line), kills)
    assert sorted(found) == sorted(CELLS)
    assert found[::2] == [(op, "eager", "cpu") for op, _, _ in found[::2]]
    return [op for op, _, _ in found[::2]]


def test_the_operator_that_noticed_the_nearest_change_is_checked_first() -> None:
    kills = [(mutant(10), "third"), (mutant(40), "second"), (mutant(90), "third")]
    assert order(12, *kills) == ["third", "second", "first"]
    assert order(45, *kills) == ["second", "third", "first"]
    assert order(80, *kills) == ["third", "second", "first"]


def test_changes_of_other_files_say_nothing() -> None:
    assert order(12, (mutant(12, "other.cpp"), "third")) == ["first", "second", "third"]


def test_a_library_that_could_not_be_opened_changes_no_order() -> None:
    assert order(12, (mutant(12), "")) == ["first", "second", "third"]
