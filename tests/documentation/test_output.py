"""What counts as the same output."""

from __future__ import annotations

import pytest

from tests.documentation.output import agrees


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("mine: 10 of 10 cells passed · 7.6 s · seed 0", "mine: 10 of 10 cells passed · 12.1 s · seed 81"),
        ("mine · /src/mine · PyTorch 2.13.0+cpu", "mine · /tmp/a/mine · PyTorch 2.15.0+cu130"),
        ("a\nb\nc\n", "a\n...\nc"),
        ("a\nc\n", "a\n...\nc"),
        ("built in 9 s, 12 kB", "built in 11 s, 9 kB"),
        ("median 1.2e-05", "median 3.4e-06"),
        ("\x1b[32mok\x1b[0m    ok", "ok ok"),
        ("x must be contiguous, not transposed", "x must be contiguous, ..."),
        (
            "m: another process is building this; waiting for it (lock: /a/b)\nm: waited 16 s for the other build\nok",
            "ok",
        ),
    ],
)
def test_figures_paths_versions_and_elided_text_do_not_count(printed: str, shown: str) -> None:
    assert agrees(printed, shown)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("9 of 10 cells passed", "10 of 10 cells passed"),
        ("eager FAIL", "eager ok"),
        ("a\nb\n", "a"),
        ("a", "a\nb"),
        ("a\nd\n", "a\n...\nc"),
        ("", "a"),
        ("shape (2, 3)", "shape (2, 4)"),
    ],
)
def test_words_counts_and_missing_lines_count(printed: str, shown: str) -> None:
    assert not agrees(printed, shown)
