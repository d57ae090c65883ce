"""Operators that use the vectors of opwright/simd.h, for each instruction set that this processor supports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

import opwright

if TYPE_CHECKING:
    from torch._ops import _OpNamespace as Ops

# The instruction sets, with the number of bytes in a vector.
SETS = {"baseline": 16, "avx2": 32, "avx512": 64}
SOURCE = Path(__file__).parents[2] / "packages" / "vectors" / "vectors.cpp"


@pytest.fixture(scope="session")
def ops() -> Ops:
    opwright.load("vectors", [SOURCE])
    return torch.ops.vectors


@pytest.fixture(scope="session")
def supported(ops: Ops) -> list[str]:
    return list(SETS)[: list(SETS).index(ops.widest()) + 1]


@pytest.fixture(params=SETS)
def instruction_set(request: pytest.FixtureRequest, supported: list[str]) -> str:
    name: str = request.param
    if name not in supported:
        pytest.skip(f"this processor does not support {name}")
    return name
