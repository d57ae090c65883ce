"""Tests of operators that mutate arguments: autograd tracks the writes, and rejects those that it cannot track."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from torch._ops import _OpNamespace as Ops


def test_mutating_a_tensor_saved_for_backward_is_an_error(ops: Ops) -> None:
    x = torch.ones(3, requires_grad=True)
    inner = x * 2
    result = inner.sin()  # saves inner
    with torch.no_grad():
        ops.add_into(inner, torch.ones(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_mutating_a_tensor_that_is_not_saved_is_allowed(ops: Ops) -> None:
    x, y = torch.ones(3), torch.ones(3, requires_grad=True)
    version = x._version
    ops.add_into(x, y)
    assert x.tolist() == [2, 2, 2]
    assert x._version > version
    assert not x.requires_grad


@pytest.mark.parametrize(("leaf", "kind"), [(True, "a leaf that requires grad"), (False, "part of a graph")])
def test_a_tensor_that_requires_grad_cannot_be_mutated(ops: Ops, leaf: bool, kind: str) -> None:
    x = torch.ones(3, requires_grad=True)
    target = x if leaf else x * 1
    with pytest.raises(RuntimeError, match=rf"::add_into mutates x, which is {kind}.* call it under torch.no_grad"):
        ops.add_into(target, torch.ones(3))
    assert target.tolist() == [1, 1, 1]


def test_a_leaf_can_be_mutated_under_no_grad(ops: Ops) -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        ops.add_into(x, torch.ones(3))
    assert x.tolist() == [2, 2, 2]


def test_an_inference_tensor_can_be_mutated(ops: Ops) -> None:
    with torch.inference_mode():
        x = torch.ones(3)
        ops.add_into(x, x.clone())
        assert x.tolist() == [2, 2, 2]


def test_a_compiled_function_mutates_its_argument(ops: Ops) -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        ops.add_into(x, x.clone())
        return x * 2

    torch._dynamo.reset()
    x = torch.ones(3)
    assert torch.compile(step, fullgraph=True)(x).tolist() == [4, 4, 4]
    assert x.tolist() == [2, 2, 2]
