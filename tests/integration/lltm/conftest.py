"""The operators of ops/lltm, built once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opwright
from tests.interpreter import python

if TYPE_CHECKING:
    from opwright.loader.open import Loaded

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "ops" / "lltm"


@pytest.fixture(scope="session")
def lltm() -> Loaded:
    return opwright.open(FOLDER)


@pytest.fixture(params=["cell", "sequence"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def compare_with(instruction_set: str, script: str) -> None:
    """Run a script that prints `compared`, as on a processor with only these vector instructions."""
    environment = {**os.environ, "OPWRIGHT_SIMD": instruction_set}
    command = [*python(), "-c", script]
    ran = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert ran.stdout == "compared\n", ran.stderr
