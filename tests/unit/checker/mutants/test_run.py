from __future__ import annotations

import threading
from pathlib import Path

import pytest

from opwright.checker.mutants.mutant import Change, Edit, Mutant
from opwright.checker.mutants.run import judge_first, likeliest_first
from opwright.checker.mutants.score import Fate, MutantResult

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


def test_changes_in_other_files_do_not_count() -> None:
    assert order(12, (mutant(12, "other.cpp"), "third")) == ["first", "second", "third"]


def test_a_library_that_could_not_be_opened_does_not_change_the_order() -> None:
    assert order(12, (mutant(12), "")) == ["first", "second", "third"]


FATES: tuple[Fate, ...] = ("killed", "equivalent", "survived", "rejected", "killed", "marked", "killed")


def result(one: Mutant) -> MutantResult:
    return MutantResult(one, FATES[one.line % len(FATES)])


@pytest.mark.parametrize("count", [0, 1, 7, 30])
def test_only_the_seed_determines_the_choice_of_mutants(count: int) -> None:
    mutants = [mutant(line) for line in range(100)]

    def lines(parallel: int) -> set[int]:
        return {one.mutant.line for one in judge_first(result, mutants, count, 5, parallel)}

    alone = lines(1)
    assert sum(result(mutant(line)).fate in {"killed", "survived"} for line in alone) == count
    assert all(lines(parallel) == alone for parallel in (2, 3, 4))


def test_all_mutants_are_judged_without_a_count_or_with_one_that_is_too_large() -> None:
    mutants = [mutant(line) for line in range(20)]
    for count in (None, 20):
        assert {one.mutant for one in judge_first(result, mutants, count, 5, 3)} == set(mutants)


def test_a_slow_mutant_does_not_block_others() -> None:
    others_are_judged = threading.Event()
    mutants = [mutant(line) for line in range(0, 7 * 8, 7)]
    first = next(judge_first(result, mutants, 1, 5, 1)).mutant

    def judge(one: Mutant) -> MutantResult:
        assert one != first or others_are_judged.wait(60)
        return result(one)

    seen = []
    for one in judge_first(judge, mutants, 6, 5, 2):
        seen.append(one.mutant)
        if len(seen) == 5:
            others_are_judged.set()
    assert seen[-1] == first
    assert len(seen) == 6
