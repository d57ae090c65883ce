from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from opwright.checker.kinds import Kind
from opwright.checker.report.html import page
from opwright.checker.verdict import Cell, Failure, Report

if TYPE_CHECKING:
    from collections.abc import Callable

VOID = {"meta", "link", "wbr"}


class Outline(HTMLParser):
    """The contents of a page: ids, links to them, table headings, and texts by element; rejects invalid nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.identifiers: list[str] = []
        self.links: dict[str, str] = {}  # by label
        self.unscoped: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")
        if identifier := given.get("id"):
            self.identifiers.append(identifier)
        if tag == "a":
            self.links[given.get("aria-label") or f"link {len(self.links)}"] = given["href"] or ""
        if tag == "th" and "scope" not in given:
            self.unscoped.append(str(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            self.texts[tag][-1] += data


def test_every_mark_links_to_its_details(report: Report) -> None:
    outline = Outline(page(report))
    assert outline.links["scale in eager on cpu: failed"] == "#fault-1"
    assert outline.links["scale in trace on cpu: failed"] == "#fault-1"
    assert outline.links["shift in vmap on cpu: not applicable"] == "#cell-2-vmap"
    assert len([label for label in outline.links if " on cpu: " in label]) == len(report.cells)
    assert {link.removeprefix("#") for link in outline.links.values()} <= set(outline.identifiers)
    assert len(outline.identifiers) == len(set(outline.identifiers))


def test_marks_are_words_and_tables_have_headings(report: Report) -> None:
    outline = Outline(page(report))
    assert {text.strip() for text in outline.texts["a"]} >= {"ok", "FAIL", "–", "skip"}
    assert outline.unscoped == []
    assert " ".join(outline.texts["h1"][0].split()) == "mine failed"


def test_the_head_contains_the_verdict_and_the_environment(report: Report) -> None:
    text = page(report)
    assert "<title>mine: failed (opwright check)</title>" in text
    assert "13 of 16 cells passed, 3 failed (ignored-strides, wrong-dtype), 2 not applicable, 4 not run" in text
    for name, fact in (("folder", "ops/mine"), ("PyTorch", "2.13.0"), ("machine", "a machine"), ("seed", "7")):
        assert f"<dt>{name}</dt><dd>{fact}</dd>" in text
    assert "<dt>time</dt><dd>34 s</dd>" in text
    assert "<dt>sanitizers</dt>" not in text
    assert "<dt>sanitizers</dt><dd>address</dd>" in page(dataclasses.replace(report, sanitize=("address",)))


def test_a_fault_is_one_card_that_lists_all_places(report: Report) -> None:
    outline = Outline(page(report))
    first, second = outline.texts["article"]
    assert "in eager; also in: trace, script" in first
    for runtime in ("eager", "trace", "script"):
        assert f"x transposed, in {runtime}" in first
    assert Kind.STRIDES.diagnosis.fix in first
    assert "a tensor is read as the wrong dtype" in second
    assert report.cells[0].failures[0].repro in outline.texts["code"]


def test_nothing_is_truncated(report_of: Callable[..., Report]) -> None:
    detail = "\n".join(f"frame {number}" for number in range(500))
    outline = Outline(page(report_of(Failure(Kind.SANITIZER, got="x" * 5000, detail=detail))))
    assert detail in outline.texts["pre"]
    assert "x" * 5000 in outline.texts["pre"]


def test_all_text_of_a_report_is_escaped() -> None:
    evil = "<script>alert('x')</script>\"onload=\" `</code><img src=x>` \x1b[2J \udcff"
    failure = Failure(Kind.RUNTIME, evil, evil, evil, evil, evil)
    op = f"mine::f{evil}"
    cells = (
        Cell(op, "eager", "cpu", "failed", evil, failures=(failure,)),
        Cell(op, "trace", "cpu", "failed", evil, failures=(failure,)),
        Cell(op, f"vmap{evil}", "cuda", "not run", evil),
    )
    harmless, harmed = (
        page(Report(words, words, words, words, 0, (words,), cells=given, failures=faults))
        for words, given, faults in (("mine", (), ()), (evil, cells, (failure,)))
    )
    assert harmed.count("<script") == harmless.count("<script") == 1
    assert harmed.count("</script") == 1
    assert "<img" not in harmed
    assert '"onload' not in harmed
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in harmed
    assert r"\x1b[2J \udcff" in harmed
    assert harmed.encode()


def test_the_page_does_not_use_the_network(report: Report) -> None:
    text = page(report)
    assert re.findall(r"https?:|//\w|@import|url\(", re.sub(r"^ *// .*$", "", text, flags=re.MULTILINE)) == []
    assert re.findall(r'(?:src|href)="([^"#]*)"', text) == ["data:,"]
    assert "default-src 'none'" in text


def test_a_library_that_does_not_build_has_a_page(report_of: Callable[..., Report]) -> None:
    text = page(report_of(library=(Failure(Kind.BUILD, got="cpu.cpp:3:9: error: 'z'"),)))
    assert "library mine: the library does not build" in text
    assert "<table" not in text


def test_a_check_in_which_no_cell_ran_does_not_pass(report: Report) -> None:
    waiting = tuple(cell for cell in report.cells if cell.status in {"not applicable", "not run"})
    assert "<title>mine: nothing ran (opwright check)</title>" in page(dataclasses.replace(report, cells=waiting))


def test_a_cell_shows_its_cases_rejections_time_and_reason(report: Report) -> None:
    rows = [" ".join(text.split()) for text in Outline(page(report)).texts["tr"]]
    assert "export passed dynamic shapes were left out 40 12 0.0 s" in rows
    assert "host-linked not run no C++ compiler" in rows
    assert "eager failed strides are ignored; a tensor is read as the wrong dtype 3 0 1.2 s" in rows
