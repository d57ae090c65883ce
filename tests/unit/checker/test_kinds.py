from __future__ import annotations

import re

import pytest

from opwright.checker.kinds import Kind


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_title_a_cause_and_a_fix(kind: Kind) -> None:
    for words in (kind.diagnosis.title, kind.diagnosis.cause, kind.diagnosis.fix):
        assert len(words.split()) > 1
        assert words == words.strip()
        assert not words.endswith(".")
        assert "\n" not in words


@pytest.mark.parametrize("kind", Kind)
def test_the_name_of_a_kind_is_lower_case_with_hyphens(kind: Kind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.value)


def test_no_two_kinds_have_the_same_text() -> None:
    assert len({kind.diagnosis.title for kind in Kind}) == len(Kind)
    assert len({kind.diagnosis.fix for kind in Kind}) == len(Kind)
