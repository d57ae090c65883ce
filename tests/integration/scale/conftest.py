"""Bundles and pictures for what runs over many inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

if TYPE_CHECKING:
    from tests.integration.conftest import Shipped


@pytest.fixture(scope="session")
def fragile(shipped: Shipped) -> Path:
    """The bundle of tests/packages/fragile, which crashes at 13; not to be changed."""
    return shipped("fragile", "torchscript")


@pytest.fixture(scope="session")
def blended(shipped: Shipped) -> Path:
    """The bundle of tests/packages/blended: two inputs, and an output of many sizes; not to be changed."""
    return shipped("blended", "torchscript")


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    """The paths of six pictures."""
    random = np.random.default_rng(0)
    paths = []
    for number in range(6):
        path = tmp_path / f"{number}.png"
        Image.fromarray(random.integers(0, 256, (12, 10, 3), np.uint8)).save(path)
        paths.append(str(path))
    return paths
