from __future__ import annotations

import os
from pathlib import Path

import pytest

from opwright.scale.workers.resources import memory_bytes, most_workers, processors

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
def test_processors_are_limited_by_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (tmp_path / "cpu.max").write_text(text)
    assert processors(tmp_path, tmp_path / "none") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max\n", WHOLE), ("1048576\n", 2**20), (f"{2**80}\n", WHOLE), ("", WHOLE), ("1 GB", WHOLE), ("-5", WHOLE)],
)
def test_memory_is_limited_by_the_container(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "memory.max").write_text(text)
    assert memory_bytes(tmp_path, tmp_path / "none") == expected


def test_the_limits_of_all_enclosing_groups_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    inner = tmp_path / "system.slice" / "one.service"
    inner.mkdir(parents=True)
    (tmp_path / "own").write_text("1:name=systemd:/elsewhere\n0::/system.slice/one.service\n")
    (inner / "memory.max").write_text("3000000\n")
    (inner.parent / "memory.max").write_text("2000000\n")
    (inner / "cpu.max").write_text("300000 100000\n")
    (tmp_path / "cpu.max").write_text("500000 100000\n")
    assert memory_bytes(tmp_path, tmp_path / "own") == 2_000_000
    assert processors(tmp_path, tmp_path / "own") == 3


def test_without_a_container_the_whole_machine_is_available(tmp_path: Path) -> None:
    assert processors(tmp_path, tmp_path / "none") == len(os.sched_getaffinity(0))
    assert memory_bytes(tmp_path, tmp_path / "none") == WHOLE


def test_the_number_of_workers_is_limited_by_processors_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwright.scale.workers.resources.processors", lambda: 8)
    monkeypatch.setattr("opwright.scale.workers.resources.memory_bytes", lambda: 2**34)
    assert most_workers(1, 2**20) == 8
    assert most_workers(3, 2**20) == 2
    assert most_workers(16, 2**20) == 1
    assert most_workers(1, 2**31) == 2
    assert most_workers(1, 2**40) == 1
