from __future__ import annotations

from opwright.checker.cases.free_memory import bytes_free


def test_the_free_memory_is_what_the_system_reports() -> None:
    assert 2**20 < bytes_free("cpu") < 2**50
