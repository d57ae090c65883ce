"""A manifest to change, and modules of a few lines to ship."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from opwright.bundle.format.limits import FORMAT
from opwright.bundle.format.manifest import (
    Cpu,
    Dimension,
    FileFacts,
    ImageRecipe,
    Input,
    InputDim,
    LibraryFile,
    Manifest,
    ModelFile,
    Operator,
    Output,
    TorchVersions,
)

if TYPE_CHECKING:
    from pathlib import Path


class Written(Protocol):
    """Writes a file of Python, and gives its path."""

    def __call__(self, text: str, name: str = "model.py") -> Path: ...


@pytest.fixture
def manifest() -> Manifest:
    digest = "0123456789abcdef" * 4
    return Manifest(
        format=FORMAT,
        opwright="0.1.0",
        model=ModelFile("model.pt", "torchscript", "float32"),
        torch=TorchVersions("2.13.0", "2.13", None),
        device="cpu",
        cpu=Cpu("x86_64", ("avx2", "fma")),
        cuda=None,
        libraries=(
            LibraryFile("lib/mine.so", ("mine",), "2.11", None, (Operator("mine::f(Tensor x) -> Tensor", True),)),
        ),
        inputs=(
            Input(
                "image",
                "float32",
                (Dimension(1, 64), 3, 224, 224),
                ImageRecipe(256, (224, 224), (0.5,) * 3, (1.0,) * 3),
            ),
            Input("warp", "float64", (3, 3), None),
        ),
        equal_dims=((InputDim("warp", 0), InputDim("warp", 1)),),
        outputs=(Output("output", "float32", (None, 1000)),),
        tolerance=0.0001,
        goldens=("goldens/0.pt",),
        host_program=None,
        files={
            "model.pt": FileFacts(3, digest),
            "lib/mine.so": FileFacts(2, digest),
            "goldens/0.pt": FileFacts(1, digest),
        },
    )


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def written(text: str, name: str = "model.py") -> Path:
        path = tmp_path / name
        path.write_text(f"import torch\nfrom torch import nn\n{text}")
        return path

    return written
