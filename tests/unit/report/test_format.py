from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.report.format import duration, format_bytes, format_seconds, printable, three_figures


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ns"),
        (8.12e-7, "812 ns"),
        (1.234e-5, "12.3 µs"),
        (9.999e-4, "1.00 ms"),
        (1.05e-3, "1.05 ms"),
        (2.3, "2.30 s"),
        (1234, "1234 s"),
    ],
)
def test_a_measured_time_has_three_significant_digits(seconds: float, words: str) -> None:
    assert format_seconds(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (812, "812 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (2**20, "1.00 MiB"), (3 * 2**33, "24.0 GiB")],
)
def test_bytes_are_counted_in_powers_of_1024(count: int, words: str) -> None:
    assert format_bytes(count) == words


@pytest.mark.parametrize(
    ("number", "words"), [(0.0125, "0.0125"), (1, "1.00"), (9.999, "10.0"), (86.44, "86.4"), (1250.4, "1250")]
)
def test_a_number_is_never_written_with_an_exponent(number: float, words: str) -> None:
    assert three_figures(number) == words


@given(st.floats(1e-9, 1e4))
def test_rounding_is_at_most_half_of_the_last_digit(number: float) -> None:
    assert float(three_figures(number)) == pytest.approx(number, rel=5.01e-3)
    value, unit = format_seconds(number).split()
    size = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[unit]
    assert float(value) * size == pytest.approx(number, rel=5.01e-3)
    assert unit == "s" or float(value) < 1000


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.44, "0.4 s"), (9.96, "10 s"), (34.2, "34 s"), (60, "1 min 0 s"), (125, "2 min 5 s")]
)
def test_a_duration_is_in_seconds_and_minutes(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    assert all(letter in "\n\t" or letter.isprintable() for letter in printable(text))


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b[31m\r\nb") == "a\\x1b[31m\nb"
