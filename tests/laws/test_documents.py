"""What the documents list is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opwright.checker.check import QUICK, RUNTIMES
from opwright.checker.kinds import Kind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/runtimes.md").read_text(encoding="utf-8")
COUNTS = {6: "six", 11: "eleven"}


def first_cells(heading: str) -> list[str]:
    """Returns the names in code in the first column of the table under a heading of the page on runtimes."""
    section = PAGE.split(f"{heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]*) \|", section, flags=re.MULTILINE)
    return [name for row in rows if not row.startswith("**") for name in re.findall(r"`([^`]+)`", row)]


def test_the_page_on_runtimes_lists_every_runtime_in_order() -> None:
    assert first_cells("# Runtimes, and what check looks at") == list(RUNTIMES)
    assert f"in {COUNTS[len(RUNTIMES)]} ways" in PAGE
    assert f"only the {COUNTS[len(QUICK)]} runtimes that compile nothing" in PAGE


@pytest.mark.parametrize("kind", Kind)
def test_the_page_on_runtimes_says_once_what_a_kind_of_failure_means(kind: Kind) -> None:
    assert first_cells("## What a failure's kind means").count(kind.value) == 1


def test_the_page_on_runtimes_names_no_kind_that_there_is_not() -> None:
    assert set(first_cells("## What a failure's kind means")) == {kind.value for kind in Kind}
