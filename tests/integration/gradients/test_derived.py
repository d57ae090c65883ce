"""Tests of derived gradients of references that native backwards do not support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import opwright
from opwright.loader.open import open_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch._ops import _OpNamespace as Ops


def halves(x: Tensor) -> list[Tensor]:
    """A list of views of the argument."""
    return [x[:2], x[2:]]


def mixture(x: Tensor) -> tuple[Tensor, list[Tensor], int]:
    """A tensor, a list that contains integers, and a number."""
    return x.sin(), [x.long(), x * x], 3


def itself(x: Tensor) -> Tensor:
    """The argument."""
    return x


def turned(x: Tensor) -> Tensor:
    """A view of the argument."""
    return x.flip(0)[1:].T


def twice(x: Tensor) -> tuple[Tensor, Tensor]:
    """The same tensor twice."""
    y = x.exp()
    return y, y


def weighted(x: Tensor, *, weight: Tensor, power: int = 2) -> Tensor:
    """A keyword-only tensor."""
    return x**power * weight


def rotated(x: Tensor) -> Tensor:
    """A complex result, from a real or complex argument."""
    return x * 1j


def constant(x: Tensor) -> Tensor:
    """A result that does not depend on the argument."""
    return torch.ones_like(x)


@pytest.fixture(scope="module")
def ops() -> Ops:
    library = opwright.Library("derived_unlike")
    for reference in (halves, mixture, itself, turned, twice, weighted, rotated, constant):
        library.op(reference)
    return cast("Ops", open_library(library).ops)


CASES: dict[str, Callable[[Ops, Tensor], Any]] = {
    "a list": lambda ops, x: tuple(ops.halves(x)),
    "one element of a list": lambda ops, x: ops.halves(x)[1],
    "a mixture": lambda ops, x: (ops.mixture(x)[0], ops.mixture(x)[1][1]),
    "a part of a mixture": lambda ops, x: ops.mixture(x)[1][1],
    "the argument itself": lambda ops, x: ops.itself(x),
    "a view of the argument": lambda ops, x: ops.turned(x),
    "one tensor twice": lambda ops, x: ops.twice(x),
    "one of one tensor twice": lambda ops, x: ops.twice(x)[1],
    "a keyword": lambda ops, x: ops.weighted(torch.ones_like(x), weight=x),
    "both": lambda ops, x: ops.weighted(x, weight=x, power=3),
    "a complex result": lambda ops, x: torch.view_as_real(ops.rotated(x)),
    "a complex argument": lambda ops, x: ops.rotated(x * (1 + 2j)).abs(),
}


@pytest.mark.parametrize("case", CASES)
def test_first_and_second_derivatives_match_finite_differences(ops: Ops, case: str) -> None:
    x = torch.linspace(0.5, 2, 9, dtype=torch.float64).reshape(3, 3).requires_grad_()
    assert gradcheck(lambda x: CASES[case](ops, x), x)
    assert gradgradcheck(lambda x: CASES[case](ops, x), x)


@pytest.mark.parametrize("name", ["halves", "mixture", "itself", "turned", "twice", "rotated", "constant"])
def test_opcheck_passes(ops: Ops, name: str) -> None:
    torch.library.opcheck(getattr(ops, name).default, (torch.randn(3, 3, requires_grad=True),))


def test_opcheck_passes_with_a_keyword_argument(ops: Ops) -> None:
    x = torch.randn(3, 3, requires_grad=True)
    torch.library.opcheck(ops.weighted.default, (x,), {"weight": x})


def test_results_are_not_views_of_arguments(ops: Ops) -> None:
    x = torch.ones(3, 3)
    for result in (ops.itself(x), ops.turned(x), *ops.halves(x)):
        result.fill_(7)
    first, second = ops.twice(x)
    first.fill_(7)
    assert x.eq(1).all()
    assert second.eq(torch.ones(1).exp()).all()


def test_a_result_independent_of_the_argument_has_a_zero_gradient(ops: Ops) -> None:
    x = torch.randn(3, requires_grad=True)
    ops.constant(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0, 0]


def test_a_list_compiles_with_its_gradient(ops: Ops) -> None:
    def model(x: Tensor) -> Tensor:
        first, second = ops.halves(x)
        result: Tensor = first.sum() + (second * ops.weighted(second, weight=second)).sum()
        return result

    torch._dynamo.reset()
    x = torch.randn(5, requires_grad=True)
    compiled = torch.compile(model, fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x), torch.autograd.grad(model(x), x))
