from __future__ import annotations

from opwright.spec.select import select_names
from tests.unit.spec.conftest import raises

COLOURS = ("red", "green", "blue")


def test_requested_names_come_in_the_order_of_the_known_ones() -> None:
    assert select_names(["blue", "red"], COLOURS, "colour") == ["red", "blue"]
    assert select_names(["mine::green", "green"], COLOURS, "colour", "mine::") == ["green"]


def test_no_requested_name_selects_all() -> None:
    assert select_names([], COLOURS, "colour") == list(COLOURS)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with raises("unknown colour 'grey': expected one of red, green, blue"):
        select_names(["red", "grey"], COLOURS, "colour")
