"""The operators of tests/packages/gradients, with and without native backwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import opwright
from opwright.loader.bridge import find_bridge
from opwright.loader.open import Loaded, open_library
from opwright.spec import library_at

if TYPE_CHECKING:
    from torch._ops import _OpNamespace as Ops

PACKAGE = Path(__file__).parents[2] / "packages" / "gradients"


@pytest.fixture(scope="session")
def package() -> Path:
    return PACKAGE


@pytest.fixture(scope="session")
def native() -> Loaded:
    return opwright.open(PACKAGE)


@pytest.fixture(scope="session")
def derived() -> Loaded:
    """The same references, without native code."""
    return open_library(with_references(opwright.Library("derived_gradients")))


@pytest.fixture(scope="session")
def recorded(native: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The same references, with gradients in Python that the bridge calls only while one is recorded."""
    assert native.path is not None
    assert find_bridge() is not None
    source = tmp_path_factory.mktemp("recorded") / "kernels.cpp"
    source.write_text("// It has native code, though no kernel.\n")
    return open_library(with_references(opwright.Library("recorded_gradients", sources=[str(source)])))


def with_references(library: opwright.Library) -> opwright.Library:
    """`library` with the references of the package, and no native backward."""
    for op in library_at(PACKAGE).ops.values():
        if not op.name.endswith("_backward"):
            twin = library.op(mutates=op.mutates)(op.reference)
            if op.has_samples:
                twin.samples(op.draw)
    return library


@pytest.fixture(params=["native", "derived", "recorded"])
def ops(request: pytest.FixtureRequest) -> Ops:
    loaded: Loaded = request.getfixturevalue(request.param)
    return cast("Ops", loaded.ops)
