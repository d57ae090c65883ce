"""Phrases that no native speaker would write do not come back into what users and contributors read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.laws.test_speaks_of_itself import ROOT, own_files

if TYPE_CHECKING:
    from pathlib import Path

PLACES = {"docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "src", "ops", "examples", "benchmarks"}
PHRASES = re.compile(
    r"\bmend(?:s|ed|ing)?\b"
    r"|\bso many\b"
    r"|\b(?:is|are) told\b"
    r"|\bas it may\b"
    r"|\bis well\b"
    r"|\bby every road\b"
    r"|\bstands?\b(?! for\b| in for\b|-)"  # "is written"; an abbreviation stands for something
    r"|\bafresh\b|\banew\b|\bnobody\b|\bsomebody\b|\bas ever\b|\baloud\b|\bno longer\b|\bwhat is more\b",
    flags=re.IGNORECASE,
)


def phrases(text: str) -> list[str]:
    """Returns the phrases in a text, in which a line break counts as a space."""
    return [found[0] for found in PHRASES.finditer(" ".join(text.split()))]


def phrases_of(path: Path) -> list[str]:
    """Returns the phrases in a file; none in a picture."""
    try:
        return phrases(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return []


def test_no_text_has_one_of_these_phrases() -> None:
    files = [path for path in own_files() if path.relative_to(ROOT).parts[0] in PLACES]
    assert ROOT / "README.md" in files
    assert {str(path.relative_to(ROOT)): found for path in files if (found := phrases_of(path))} == {}


@pytest.mark.parametrize("text", ["It mends a bug.", "so many", "The host\n  is told", "It stands in it", "No longer."])
def test_a_phrase_is_found(text: str) -> None:
    assert len(phrases(text)) == 1


@pytest.mark.parametrize("text", ["-1 stands for none", "a stand-in", "is wellformed", "amend", "not so much"])
def test_other_words_are_accepted(text: str) -> None:
    assert phrases(text) == []
