"""The operators of tests/packages/gradients, with their native backwards and without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import opwright
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
    library = opwright.Library("derived_gradients")
    for op in library_at(PACKAGE).ops.values():
        if not op.name.endswith("_backward"):
            twin = library.op(mutates=op.mutates)(op.reference)
            if op.has_samples:
                twin.samples(op.draw)
    return open_library(library)


@pytest.fixture(params=["native", "derived"])
def ops(request: pytest.FixtureRequest) -> Ops:
    loaded: Loaded = request.getfixturevalue(request.param)
    return cast("Ops", loaded.ops)
