"""Tests of gradients in Python that the bridge calls only while one is recorded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.autograd import forward_ad

import opwright
from opwright.errors import LoadError
from opwright.loader.bridge import attach_python, find_bridge

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from opwright.loader.open import Loaded


KERNELS = {"opwright.loader.gradient", "opwright.loader.mutation"}


def calls_python(call: Callable[[], Any]) -> bool:
    """Whether a call of an operator runs its kernel in Python for autograd."""
    modules = set()

    def see(frame: FrameType, _event: str, _argument: object) -> None:
        modules.add(frame.f_globals.get("__name__"))

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return not modules.isdisjoint(KERNELS)


def test_python_is_called_only_while_a_gradient_is_recorded(recorded: Loaded, derived: Loaded) -> None:
    x, y, leaf = torch.randn(3), torch.randn(3), torch.randn(3, requires_grad=True)
    assert not calls_python(lambda: recorded.ops.mul(x, y))
    assert calls_python(lambda: recorded.ops.mul(x, leaf))
    with torch.no_grad():
        assert not calls_python(lambda: recorded.ops.mul(leaf, leaf))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, y)
        assert calls_python(lambda: recorded.ops.mul(dual, y))
    # Prove that such calls are detected.
    assert calls_python(lambda: derived.ops.mul(x, y))


def test_python_is_called_only_if_a_mutation_is_rejected(recorded: Loaded, derived: Loaded) -> None:
    x, y, leaf = torch.zeros(3), torch.ones(3), torch.zeros(3, requires_grad=True)
    assert not calls_python(lambda: recorded.ops.add_into(x, y))
    assert x.tolist() == [1, 1, 1]
    assert x._version == 2
    with torch.no_grad():
        assert not calls_python(lambda: recorded.ops.add_into(leaf, y))
    with pytest.raises(RuntimeError, match=r"^recorded_gradients::add_into mutates x, which is a leaf"):
        recorded.ops.add_into(leaf, y)
    assert calls_python(lambda: derived.ops.add_into(x, y))


def test_a_gradient_that_python_did_not_register_is_an_error() -> None:
    library = opwright.Library("never_recorded")
    op = library.op(lone)
    path = find_bridge()
    assert path is not None
    with pytest.raises(LoadError) as caught:
        attach_python(op, path)
    message = "the gradient of never_recorded::lone cannot be registered: Could not find schema for "
    assert str(caught.value).startswith(f"{message}opwright_recorded::never_recorded__lone.")


def lone(x: torch.Tensor) -> torch.Tensor:
    """An operator that is not registered."""
    return x + 1
