from __future__ import annotations

import os
from pathlib import Path

import pytest

from opwright.scale.workers.resources import memory_bytes, processors

WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max 100000\n", 8),
        ("400000 100000\n", 4),
        ("250000 100000\n", 2),
        ("50000 100000\n", 1),
        ("900000 100000\n", 8),
        ("400000 0\n", 8),
        ("400000\n", 8),
        ("", 8),
        ("many 100000", 8),
        ("é", 8),
    ],
)
def test_processors_are_those_that_a_container_may_keep_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (tmp_path / "cpu.max").write_text(text)
    assert processors(tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max\n", WHOLE), ("1048576\n", 2**20), (f"{2**80}\n", WHOLE), ("", WHOLE), ("1 GB", WHOLE), ("-5", WHOLE)],
)
def test_memory_is_what_a_container_has(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "memory.max").write_text(text)
    assert memory_bytes(tmp_path) == expected


def test_without_a_container_there_is_the_whole_machine(tmp_path: Path) -> None:
    assert processors(tmp_path) == len(os.sched_getaffinity(0))
    assert memory_bytes(tmp_path) == WHOLE
