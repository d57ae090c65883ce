"""Tests of gradients outside of eager autograd: torch.func, compilers, TorchScript."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, func
from torch.autograd import forward_ad

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch._ops import _OpNamespace as Ops

    from opwright.loader.open import Loaded

pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop"),  # of PyTorch's vmap, without a batching rule
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),  # of the graph that linearize makes
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),  # of compiled autograd
]


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def loss(mul: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, y: mul(x, y).sin().sum()


TRANSFORMATIONS: dict[str, Any] = {
    "grad": lambda mul: func.grad(loss(mul), argnums=(0, 1))(drawn(5), drawn(5)),
    "vjp": lambda mul: func.vjp(mul, drawn(5), drawn(5))[1](drawn(5)),
    "grad of grad": lambda mul: func.jacrev(func.jacrev(loss(mul)))(drawn(5), drawn(5)),
    "vmap": lambda mul: torch.vmap(mul, in_dims=(0, None))(drawn(3, 5), drawn(5)),
    "vmap of grad": lambda mul: torch.vmap(func.grad(loss(mul)))(drawn(3, 5), drawn(3, 5)),
    "grad of vmap": lambda mul: func.grad(loss(torch.vmap(mul)))(drawn(3, 5), drawn(3, 5)),
    "grad through a view that was written to": lambda mul: func.grad(lambda x: through_a_written_view(mul, x))(
        drawn(5)
    ),
    "jvp": lambda mul: func.jvp(mul, (drawn(5), drawn(5)), (drawn(5), drawn(5))),
    "jacfwd": lambda mul: func.jacfwd(mul)(drawn(5), drawn(5)),
    # The function must not draw random numbers, because linearize traces it.
    "linearize": lambda mul: func.linearize(functools.partial(mul, drawn(5)), drawn(5))[1](drawn(5)),
    "functionalize": lambda mul: func.functionalize(mul)(drawn(5), drawn(5)),
    "backward through vmap": lambda mul: torch.autograd.grad(*batched(mul)),
    "backward through grad": lambda mul: torch.autograd.grad(*captured(mul)),
}


def through_a_written_view(mul: Callable[[Tensor, Tensor], Tensor], x: Tensor) -> Tensor:
    base = x * 1
    view = base[1:]
    base.mul_(2)
    return mul(view, view).sum()


def batched(mul: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    x = drawn(3, 5).requires_grad_()
    return loss(torch.vmap(mul, in_dims=(0, None)))(x, drawn(5)), x


def captured(mul: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    y = drawn(5).requires_grad_()
    return func.grad(lambda x: loss(mul)(x, y))(drawn(5)).sum(), y


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformation_returns_the_same_as_for_pytorchs_product(ops: Ops, name: str) -> None:
    transform = TRANSFORMATIONS[name]
    torch.testing.assert_close(transform(ops.mul), transform(torch.mul))


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformation_supports_a_training_form(ops: Ops, name: str) -> None:
    transform = TRANSFORMATIONS[name]
    torch.testing.assert_close(transform(ops.gated), transform(lambda x, y: torch.tanh(x) * y))


def test_a_forward_over_reverse_hessian_is_correct_or_rejected(native: Loaded, derived: Loaded) -> None:
    x, y = drawn(5), drawn(5)
    expected = func.hessian(loss(torch.mul))(x, y)
    torch.testing.assert_close(func.hessian(loss(derived.ops.mul))(x, y), expected)
    with pytest.raises(NotImplementedError, match=re.escape("gradients::mul_backward has no forward-mode derivative")):
        func.hessian(loss(native.ops.mul))(x, y)


def test_torch_func_uses_a_native_second_derivative(native: Loaded) -> None:
    third = func.grad(func.grad(func.grad(lambda x: native.ops.cube(x, factor=0.5))))
    torch.testing.assert_close(third(drawn(1)[0]), torch.tensor(3.0, dtype=torch.float64))


def test_torch_func_and_backward_agree_for_every_operator(ops: Ops) -> None:
    def several(x: Tensor, y: Tensor) -> Tensor:
        sine, cosine = ops.sin_cos(x)
        parts = ops.weighted_sum([sine, y], x) + ops.sum_of_given([None, cosine], y)
        value, _ = ops.largest(ops.rows(parts, torch.tensor([3, 1, 1])))
        result: Tensor = (ops.affine(ops.sigmoid(parts), y, None, 0.5) + ops.cube(x, factor=2.0)).sum() + value
        return result

    x, y = drawn(5).requires_grad_(), drawn(5).requires_grad_()
    expected = torch.autograd.grad(several(x, y), (x, y))
    torch.testing.assert_close(func.grad(several, argnums=(0, 1))(x.detach(), y.detach()), expected)


def test_forward_mode_returns_the_derivative_instead_of_zero(ops: Ops) -> None:
    x, y = drawn(5), drawn(5)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        torch.testing.assert_close(forward_ad.unpack_dual(ops.mul(dual, y)).tangent, y)


def test_a_compiled_function_has_the_gradients_of_eager_mode(ops: Ops) -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        sine, cosine = ops.sin_cos(ops.mul(x, y))
        parts = ops.weighted_sum([sine, y], x) * cosine + ops.affine(x, y, None, 0.5) + ops.gated(x, y)
        result: Tensor = (parts + ops.cube(x, factor=2.0)).sum()
        return result

    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    for size in (3, 5, 8):
        x, y = drawn(size).requires_grad_(), drawn(size).requires_grad_()
        torch.testing.assert_close(
            torch.autograd.grad(compiled(x, y), (x, y)), torch.autograd.grad(model(x, y), (x, y))
        )


def test_compiled_autograd_calls_the_backward(ops: Ops) -> None:
    x, y = drawn(5).requires_grad_(), drawn(5).requires_grad_()
    result = ops.affine(ops.mul(x, y), y, None, 2.0, "minus", [1, 2], True) + ops.weighted_sum([x, y], x)
    expected = torch.autograd.grad(result.sum(), (x, y), retain_graph=True)
    with torch._dynamo.compiled_autograd._enable(lambda graph: graph):
        result.sum().backward()
    torch.testing.assert_close((x.grad, y.grad), expected)


class Scripted(torch.nn.Module):
    """One training step with native gradients; TorchScript optimizes it in its third run."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(drawn(5))

    def forward(self, x: Tensor) -> Tensor:
        product = torch.ops.gradients.mul(x, self.weight)
        some = torch.ops.gradients.sum_of_given([product, None], x)
        terms = torch.ops.gradients.weighted_sum([some, x], self.weight)
        gated = torch.ops.gradients.gated(terms, self.weight)
        result: Tensor = torch.ops.gradients.cube(gated, factor=0.25).sum()
        return result


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_scripted_module_trains_like_the_eager_one(native: Loaded) -> None:
    assert native.ops.mul is torch.ops.gradients.mul
    eager = Scripted()
    scripted = torch.jit.script(Scripted())
    for model in (eager, scripted):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            model(drawn(5)).backward()
            optimizer.step()
    assert torch.equal(eager.weight, scripted.weight)
    assert not torch.equal(eager.weight, drawn(5))
