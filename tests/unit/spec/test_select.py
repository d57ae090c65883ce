from __future__ import annotations

import re

import pytest

from opwright.errors import SpecError
from opwright.spec.select import chosen

COLOURS = ("red", "green", "blue")


def test_what_is_asked_for_comes_in_the_order_of_what_there_is() -> None:
    assert chosen(["blue", "red"], COLOURS, "colour") == ["red", "blue"]
    assert chosen(["mine::green", "green"], COLOURS, "colour", "mine::") == ["green"]


def test_to_ask_for_nothing_is_to_ask_for_all() -> None:
    assert chosen([], COLOURS, "colour") == list(COLOURS)


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(SpecError, match=re.escape("there is no colour 'grey': expected some of red, green, blue")):
        chosen(["red", "grey"], COLOURS, "colour")
