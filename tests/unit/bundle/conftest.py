"""Short modules to ship."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pathlib import Path


class Written(Protocol):
    """Writes a Python file, and returns its path."""

    def __call__(self, text: str, name: str = "model.py") -> Path: ...


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def written(text: str, name: str = "model.py") -> Path:
        path = tmp_path / name
        path.write_text(f"import torch\nfrom torch import nn\n{text}")
        return path

    return written
