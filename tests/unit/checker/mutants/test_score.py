from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from opwright.checker.mutants.mutant import Change, Edit, Mutant
from opwright.checker.mutants.report.html import page
from opwright.checker.mutants.report.progress import MutantProgress
from opwright.checker.mutants.report.terminal import show
from opwright.checker.mutants.score import Fate, MutantResult, MutationReport
from opwright.checker.report.github import survivor_annotations

CONTENT = b"int f(int a) {\n    return a < 3;\n}\n"


def result(fate: Fate, noticed: str = "") -> MutantResult:
    mutant = Mutant(Path("/mine/cpu.cpp"), 2, 14, Edit(Change.COMPARISON, 28, 29, "<="), CONTENT)
    return MutantResult(mutant, fate, noticed, by_quick=fate == "killed", seconds=1.0)


def report(*fates: Fate) -> MutationReport:
    return MutationReport("mine", "/mine", "2.13.0", "a machine", 7, True, 9, tuple(map(result, fates)), 61.0)


def shown(of: MutationReport) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(of, console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_score_excludes_equivalent_mutants() -> None:
    of = report("killed", "killed", "killed", "survived", "equivalent", "marked", "rejected")
    assert of.score == 0.75
    assert not of.passed
    assert report("killed").passed
    assert report("equivalent").score is None
    assert not report("equivalent").passed


def test_the_last_line_contains_the_score_and_the_seed() -> None:
    text = shown(report("killed", "killed", "killed", "survived", "equivalent", "marked", "rejected"))
    assert text.splitlines()[-1] == (
        "mine: 3 of 4 mutants killed (75.0 %), 1 survived, 1 equivalent (same object code), 1 marked as equivalent, "
        "1 rejected by the compiler · quick check · 1 min 1 s · seed 7"
    )


def test_a_full_check_reports_what_the_quick_check_noticed() -> None:
    late = replace(result("killed"), by_quick=False)
    of = replace(report("killed", "killed"), quick=False, results=(result("killed"), late))
    assert (of.score, of.quick_score) == (1.0, 0.5)
    assert shown(of).splitlines()[-1] == (
        "mine: 2 of 2 mutants killed (100.0 %), 1 by the quick check · full check · 1 min 1 s · seed 7"
    )


def test_a_survivor_is_shown_as_a_diff_with_its_location() -> None:
    lines = shown(report("survived")).splitlines()
    assert "survived  /mine/cpu.cpp:2:14: comparison" in lines
    assert "-    return a < 3;" in lines
    assert "+    return a <= 3;" in lines
    assert any(line.startswith("  fix  Add a sample whose result the change affects.") for line in lines)


def test_a_report_without_mutants_has_no_score() -> None:
    assert "mine: no mutant was checked, 1 equivalent (same object code)" in shown(report("equivalent"))


def test_json_contains_every_mutant() -> None:
    given = json.loads(json.dumps(report("killed", "survived").to_json()))
    assert (given["killed"], given["survived"], given["score"], given["passed"]) == (1, 1, 0.5, False)
    assert given["mutants"][1]["fate"] == "survived"
    assert given["mutants"][1]["line"] == 2
    assert given["mutants"][1]["change"] == "comparison"
    assert given["mutants"][1]["diff"].endswith("-    return a < 3;\n+    return a <= 3;")


def test_the_page_shows_survivors_and_escapes_sources() -> None:
    text = page(report("killed", "survived"))
    assert "1 of 2 mutants killed (50.0 %), 1 survived" in text
    assert "return a &lt;= 3;" in text
    assert "return a <= 3;" not in text


def test_a_survivor_is_an_annotation_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/")
    (line,) = survivor_annotations(report("killed", "survived"))
    assert line.startswith("::warning file=mine/cpu.cpp,line=2,title=no sample notices this change%3A comparison::")
    assert line.endswith("%0A-    return a < 3;%0A+    return a <= 3;")


def test_verbose_progress_is_a_line_for_each_mutant() -> None:
    console = Console(file=io.StringIO(), width=200)
    with MutantProgress("mine", console, verbose=True) as progress:
        progress.start("mine", 2)
        progress.begin(result("killed").mutant)
        progress.end(result("killed", "f in eager: wrong-result (sample 1)"))
        progress.end(result("survived"))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == [
        "killed       1.0 s  cpu.cpp:2: comparison: < -> <=  f in eager: wrong-result (sample 1)",
        "survived     1.0 s  cpu.cpp:2: comparison: < -> <=",
    ]
