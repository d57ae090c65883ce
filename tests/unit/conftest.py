"""Fixtures that unit tests share: Python-only operators, each described in its own op.py, and a manifest."""

from __future__ import annotations

import itertools
import os
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
from opwright.spec import library_at

if TYPE_CHECKING:
    from opwright.spec import Library

HEAD = """\
from __future__ import annotations
from collections.abc import Sequence
import os, signal, time
import torch
from torch import Tensor
import opwright
library = opwright.Library({namespace!r})
"""

# A namespace can be registered only once per process.
_numbers = itertools.count()


class Describe(Protocol):
    """Writes an op.py with these operators, and returns the library that it describes."""

    def __call__(self, text: str) -> Library: ...


@pytest.fixture(scope="session")
def describe(tmp_path_factory: pytest.TempPathFactory) -> Describe:
    def describe(text: str) -> Library:
        namespace = f"described_{os.getpid()}_{next(_numbers)}"
        folder = tmp_path_factory.mktemp(namespace, numbered=False)
        (folder / "op.py").write_text(HEAD.format(namespace=namespace) + text)
        return library_at(folder)

    return describe


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
