"""Tests of gradients in eager mode: native ones, called by the C++ bridge, and those derived from references."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._pytree import tree_map_only

from opwright.spec import Make

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch._ops import _OpNamespace as Ops

    from opwright.loader.open import Loaded
    from opwright.spec import Op

CONSTANT = torch.linspace(-1, 2, 6, dtype=torch.float64).reshape(2, 3)
INDEX = torch.tensor([0, 5, 2, 2])
# Each accepts the operators and one to three tensors of shape (2, 3) with different layouts.
CASES: dict[str, Callable[..., Any]] = {
    "one input": lambda ops, x: ops.mul(x, CONSTANT),
    "the other input": lambda ops, y: ops.mul(CONSTANT, y),
    "both inputs": lambda ops, x, y: ops.mul(x, y),
    "the same tensor twice": lambda ops, x: ops.mul(x, x),
    "an optional tensor": lambda ops, x, y, z: ops.affine(x, y, z, 2.5),
    "an optional tensor that is not there": lambda ops, x, y: ops.affine(x, y, None, -1.0),
    "an optional tensor alone": lambda ops, z: ops.affine(CONSTANT, CONSTANT, z, 0.5, "minus"),
    "non-tensor arguments": lambda ops, x: ops.affine(x, CONSTANT, x, 0.5, "minus", [1, 2], True),
    "a list": lambda ops, x, y, z: ops.weighted_sum([x, y], z),
    "a list that requires grad in part": lambda ops, x: ops.weighted_sum([CONSTANT, x, CONSTANT], CONSTANT),
    "a list that requires no grad": lambda ops, z: ops.weighted_sum([CONSTANT, CONSTANT], z),
    "an empty list": lambda ops, z: ops.weighted_sum([], z),
    "a list with a None in it": lambda ops, x, y: ops.sum_of_given([None, x, None, CONSTANT], y),
    "a list of None": lambda ops, y: ops.sum_of_given([None], y),
    "two results": lambda ops, x: ops.sin_cos(x),
    "the first of two results": lambda ops, x: ops.sin_cos(x)[0],
    "the second of two results": lambda ops, x: ops.sin_cos(x)[1],
    "an integer result": lambda ops, x: ops.largest(x.flatten())[0],
    "an integer input": lambda ops, x: ops.rows(x.flatten(), INDEX),
    "a saved result": lambda ops, x: ops.sigmoid(x),
    "a keyword": lambda ops, x: ops.cube(x, factor=-2.0),
    "a training form": lambda ops, x, y: ops.gated(x, y),
    "a training form called itself": lambda ops, x, y: ops.gated_with_gate(x, y),
    "one input of a training form": lambda ops, y: ops.gated(CONSTANT, y),
}


def drawn(*shape: int, grad: bool = True) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator, requires_grad=grad)


@pytest.mark.parametrize("case", CASES)
def test_first_and_second_derivatives_match_finite_differences(ops: Ops, case: str) -> None:
    laid_out = (drawn(2, 3), drawn(3, 2).T, drawn(2, 3, 2)[..., 1])
    inputs = laid_out[: len(inspect.signature(CASES[case]).parameters) - 1]
    function = functools.partial(CASES[case], ops)
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("which", ["native", "derived"])
def test_every_operator_passes_opcheck_with_its_samples(which: str, request: pytest.FixtureRequest) -> None:
    loaded = request.getfixturevalue(which)
    checked = 0
    for op in loaded.library.ops.values():
        for sample in op.draw(Make()) if op.has_samples else ():
            given = tree_map_only(Tensor, functools.partial(asking, op), sample.args)
            torch.library.opcheck(getattr(loaded.ops, op.name).default, given, sample.kwargs)
            checked += 1
    assert checked > (20 if which == "native" else 10)


def asking(op: Op, tensor: Tensor) -> Tensor:
    return tensor.requires_grad_(tensor.is_floating_point() and not op.mutates)


def test_a_native_gradient_does_not_pass_through_python(native: Loaded) -> None:
    x = drawn(3)
    assert "CppFunction" in repr(native.ops.mul(x, x).grad_fn)


@pytest.mark.parametrize(("of_x", "of_y", "asked"), [(True, True, 3), (True, False, 1), (False, True, 2)])
def test_only_required_gradients_are_computed(native: Loaded, of_x: bool, of_y: bool, asked: int) -> None:
    x, y = drawn(3, grad=of_x), drawn(3, grad=of_y)
    native.ops.asked_of_mul_backward()
    native.ops.mul(x, y).sum().backward()
    assert native.ops.asked_of_mul_backward() == asked
    assert (x.grad is not None, y.grad is not None) == (of_x, of_y)


def test_gradients_that_torch_autograd_grad_does_not_request_are_not_computed(native: Loaded) -> None:
    x, y = drawn(3), drawn(3)
    native.ops.asked_of_mul_backward()
    torch.autograd.grad(native.ops.mul(x, y).sum(), y)
    assert native.ops.asked_of_mul_backward() == 2


def test_the_second_derivative_is_native_if_the_backward_has_a_backward(native: Loaded) -> None:
    x = drawn(3)
    (grad,) = torch.autograd.grad(native.ops.cube(x).sum(), x, create_graph=True)
    assert "CppFunction" in repr(grad.grad_fn)
    (second,) = torch.autograd.grad(grad.sum(), x)
    torch.testing.assert_close(second, 6 * x.detach())


def test_a_training_form_is_called_only_while_a_gradient_is_recorded(native: Loaded) -> None:
    x, y = drawn(3), drawn(3)
    native.ops.gates_made()
    result = native.ops.gated(x, y)
    assert native.ops.gates_made() == 1
    assert "CppFunction" in repr(result.grad_fn)
    with torch.no_grad():
        assert native.ops.gated(x, y).equal(result)
    native.ops.gated(x.detach(), y.detach())
    assert native.ops.gates_made() == 0


def test_an_integer_result_does_not_require_grad(ops: Ops) -> None:
    value, place = ops.largest(drawn(5))
    assert value.requires_grad
    assert not place.requires_grad


def test_only_the_declared_result_is_saved(native: Loaded) -> None:
    x = drawn(3)
    factor = x * 1
    result = native.ops.sigmoid(factor)
    with torch.no_grad():
        factor.zero_()  # not saved, so this is allowed
    result.sum().backward()
    expected = torch.sigmoid(x.detach())
    torch.testing.assert_close(x.grad, expected * (1 - expected))


def test_a_saved_tensor_must_not_be_modified(ops: Ops) -> None:
    x = drawn(3)
    saved = x * 1
    result = ops.mul(saved, x)
    with torch.no_grad():
        saved.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_graph_is_freed_after_backward_unless_it_is_retained(ops: Ops) -> None:
    x, y = drawn(3), drawn(3)
    result = ops.mul(x, y).sum()
    result.backward(retain_graph=True)
    result.backward()
    torch.testing.assert_close(x.grad, 2 * y.detach())
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_nothing_is_recorded_while_gradients_are_disabled(ops: Ops, guard: Callable[[], Any]) -> None:
    x = drawn(3)
    with guard():
        results = [ops.mul(x, x), *ops.sin_cos(x), ops.weighted_sum([x], x), ops.cube(x, factor=2.0)]
    assert not any(result.requires_grad for result in results)
    assert not ops.mul(x.detach(), x.detach()).requires_grad


def test_hooks_receive_the_gradients(ops: Ops) -> None:
    x, y = drawn(3), drawn(3)
    seen: list[Tensor] = []
    x.register_hook(lambda grad: seen.append(grad) or 2 * grad)  # type: ignore[func-returns-value]
    ops.mul(x, y).sum().backward()
    torch.testing.assert_close(seen[0], y.detach())
    torch.testing.assert_close(x.grad, 2 * y.detach())


def test_an_unused_result_has_no_incoming_gradient(ops: Ops) -> None:
    x = drawn(3)
    sine, cosine = ops.sin_cos(x)
    assert torch.autograd.grad(sine.sum(), x, retain_graph=True)[0].equal(x.detach().cos())
    assert torch.autograd.grad(cosine.sum(), x)[0].equal(-x.detach().sin())


def test_threads_use_a_shared_graph_and_their_own(ops: Ops) -> None:
    x, y = drawn(64), drawn(64)
    shared = ops.mul(x, y)
    found: list[Tensor] = []

    def work() -> None:
        for _ in range(20):
            found.extend(torch.autograd.grad(shared, x, torch.ones(64), retain_graph=True))
            found.extend(torch.autograd.grad(ops.mul(x, y).sum(), x))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160
    assert all(grad.equal(y.detach()) for grad in found)


def test_a_freed_graph_keeps_no_tensor_alive(ops: Ops) -> None:
    x = drawn(3)
    inner = x * 1
    results = [ops.mul(inner, inner), ops.sin_cos(inner), ops.weighted_sum([inner], x), ops.sigmoid(inner)]
    gone = weakref.ref(inner)
    del inner, results
    gc.collect()
    assert gone() is None


def test_a_gradient_has_the_dtype_of_its_argument(ops: Ops) -> None:
    x = torch.ones(3, requires_grad=True)
    result = ops.affine(x, x.detach(), None, 2.0, "plus", None, False, torch.float64)
    assert result.dtype == torch.float64
    result.sum().backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float32, [2.0, 2.0, 2.0])


def test_a_parameter_gets_a_gradient(ops: Ops) -> None:
    x = torch.nn.Parameter(drawn(3).detach())
    ops.mul(x, x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
