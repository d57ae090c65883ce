from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.bencher.draws import Draws
from opwright.spec import Make

if TYPE_CHECKING:
    from tests.unit.conftest import Describe

OP = """
@library.op
def f(x: Tensor, y: Tensor) -> Tensor:
    return x + y

@f.sweep
def _(make):
    yield "unused", (make.randn(2), make.randn(2))
    yield "used", ({calls},)
"""


def draws(describe: Describe, calls: str) -> Draws:
    library = describe(OP.replace("{calls}", calls))
    return Draws(library.ops["f"], 1, lambda seed: Make(seed=seed))


def test_a_size_is_drawn_with_any_seed(describe: Describe) -> None:
    drawn = draws(describe, "make.randn(40), make.randint(0, 9, 40)")
    one, again, other = (drawn.draw(seed).arguments for seed in (1, 1, 2))
    assert [tuple(tensor.shape) for tensor in one.values()] == [(40,), (40,)]
    for name in ("x", "y"):
        assert torch.equal(one[name], again[name])
        assert not torch.equal(one[name], other[name])


@pytest.mark.parametrize(
    "calls",
    [
        "make.randn(4), make.rand(4)",
        "make.randn(4, 6).t()[1:] * 0.5 + 1, make.randint(0, 9, 3).float().exp()",
        "make.randn(24).reshape(4, 6).t().contiguous().clamp(-1, 1), -make.randn(6, 4)",
        "make.randn(make.randn(7).shape[0]), make.randn(7, dtype=torch.bfloat16)",
    ],
)
def test_elements_that_are_drawn_independently_may_be_exchanged(describe: Describe, calls: str) -> None:
    drawn = draws(describe, calls).draw(3)
    assert len(drawn.independent) == 2


@pytest.mark.parametrize(
    "calls",
    [
        "*(lambda x: (x, x.argsort()))(make.randn(4))",
        "make.randn(4), make.randn(4).softmax(0)",
        "make.randn(4).sort().values, make.randn(4)",
        "make.randn(4), make.randn(4) * make.randn(1).item()",
        "*(lambda x: (x, x * 2))(make.randn(4))",
        "make.randn(4), make.randn(4) * torch.arange(4)",
    ],
)
def test_elements_that_depend_on_others_may_not_be_exchanged(describe: Describe, calls: str) -> None:
    assert draws(describe, calls).draw(3).independent == frozenset()


def test_the_elements_of_a_constant_may_not_be_exchanged(describe: Describe) -> None:
    assert len(draws(describe, "make.randn(4), torch.arange(4)").draw(3).independent) == 1
