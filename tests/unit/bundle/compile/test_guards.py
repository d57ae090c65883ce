from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from opwright.bundle.compile.guards import broken_guard
from opwright.bundle.format.manifest import Dimension
from opwright.bundle.source.samples import Inputs
from opwright.bundle.source.shape import Shape

X = "L['inputs'][0].size()[0]"


def broken(*guards: str, least: int = 2, most: int = 64) -> str:
    program: Any = SimpleNamespace(_guards_code=list(guards))
    return broken_guard(program, Inputs(("x",), (Shape(torch.float32, (Dimension(least, most), 3)),), (None,), ()))


@pytest.mark.parametrize(
    ("guard", "size"),
    [
        (f"{X} <= 32", 33),
        (f"((3*{X}) % 5) != 1", 2),
        (f"2 <= {X} < 9", 9),
        (f"not {X} == 7", 7),
        (f"{X} // 4 * 4 == {X} or {X} < 6", 6),
        (f"max({X}, 3) ** 2 >= 9 and math.floor({X} / 2) != 5", 10),
    ],
)
def test_a_condition_is_evaluated_for_all_sizes_and_the_first_that_breaks_it_is_reported(guard: str, size: int) -> None:
    assert broken(guard) == f"{guard.replace(X, 'x.shape[0]')}, which is false for {size}"


@pytest.mark.parametrize(
    "guard", [f"{X} >= 2", f"{X} ** 2 > {X}", f"{X} == L['inputs'][1].size()[0]", "unknown(3)", "("]
)
def test_a_condition_that_holds_or_is_unknown_breaks_nothing(guard: str) -> None:
    assert not broken(guard)


def test_a_condition_is_never_executed(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    assert not broken(f"__import__('pathlib').Path({str(canary)!r}).touch()", f"{X}.__class__", f"9**9**9 == {X}")
    assert not canary.exists()
