"""The operators of ops/geometry, built once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opwright

if TYPE_CHECKING:
    from opwright.loader.open import Loaded

FOLDER = Path(__file__).parents[3] / "ops" / "geometry"


@pytest.fixture(scope="session")
def geometry() -> Loaded:
    return opwright.open(FOLDER)
