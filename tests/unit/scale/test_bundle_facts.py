from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from opwright.bundle.format.manifest import FILE_NAME, Manifest
from opwright.errors import BundleError
from opwright.scale.bundle_facts import InputFacts, OutputFacts, read_facts

Dim = int | dict[str, int | None]


@dataclass
class Shipped:
    """A folder with a manifest of one's choice, and with goldens."""

    folder: Path
    manifest: dict[str, Any]

    def write(self) -> Path:
        (self.folder / FILE_NAME).write_text(json.dumps(self.manifest))
        return self.folder

    def golden(self, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> None:
        name = f"goldens/{len(self.manifest['goldens'])}.pt"
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        torch.save(([torch.zeros(one) for one in inputs], [torch.zeros(one) for one in outputs], {}), path)
        content = path.read_bytes()
        self.manifest["goldens"].append(name)
        self.manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


Ship = Callable[[list[list[Dim]], list[list[int | None]]], Shipped]


@pytest.fixture
def ship(tmp_path: Path) -> Ship:
    from tests.unit.bundle.conftest import manifest as example

    made: Manifest = example.__wrapped__() if hasattr(example, "__wrapped__") else example()
    said = json.loads(msgspec.json.encode(made))

    def ship(inputs: list[list[Dim]], outputs: list[list[int | None]]) -> Shipped:
        said["inputs"] = [
            {"name": f"x{place}", "dtype": "float32", "dims": dims, "image": None} for place, dims in enumerate(inputs)
        ]
        said["outputs"] = [
            {"name": f"y{place}", "dtype": "float32", "dims": dims} for place, dims in enumerate(outputs)
        ]
        said["equal_dims"], said["goldens"] = [], []
        return Shipped(tmp_path, said)

    return ship
