from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols

import opwright
from opwright.spec import Make, derive
from tests.unit.spec.conftest import described


def mixed(
    x: Tensor,
    parts: Sequence[Tensor],
    maybe: Sequence[Optional[Tensor]],
    bias: Optional[Tensor] = None,
    *,
    power: int = 2,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    total = sum((part * part for part in parts), x**power)
    total = sum((part for part in maybe if part is not None), total)
    return (total if bias is None else total * bias), x.long(), [x.sin(), x.long()]


def arguments(**changes: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    x, part, other, bias = torch.randn(4, 3)
    named = {"x": x, "parts": [part, torch.arange(3)], "maybe": [None, other], "bias": bias, "power": 3}
    return {**named, **changes}


def expected(given: dict[str, Any], grads: list[Tensor | None]) -> list[Tensor | None]:
    x, part, other, bias = given["x"], given["parts"][0], given["maybe"][1], given["bias"]
    inputs = [one.clone().requires_grad_() for one in (x, part, other, bias)]
    results = mixed(inputs[0], [inputs[1], given["parts"][1]], [None, inputs[2]], inputs[3], power=given["power"])
    loss = torch.zeros(())
    for one, grad in zip((results[0], results[2][0]), (grads[0], grads[2]), strict=True):
        loss = loss if grad is None else loss + (one * grad).sum()
    return list(torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True))


@given(st.lists(st.booleans(), min_size=4, max_size=4), st.booleans(), st.integers(1, 4))
def test_requested_gradients_equal_those_of_autograd(wanted: list[bool], second: bool, power: int) -> None:
    op, named = described(mixed), arguments(power=power)
    grads = [torch.ones(3), None, torch.full((3,), 2.0) if second else None, None]
    of_x, of_part, of_other, of_bias = expected(named, grads)
    structured = [of_x, [of_part, None], [None, of_other], of_bias]
    found = derive.gradients(op, named, grads, wanted)
    torch.testing.assert_close(found, [one if asked else None for one, asked in zip(structured, wanted, strict=True)])


def test_a_missing_argument_has_no_gradient() -> None:
    op, named = described(mixed), arguments(bias=None)
    found = derive.gradients(op, named, [torch.ones(3), None, None, None], [False, False, False, True])
    assert found == [None, None, None, None]


def test_the_results_of_a_backward_match_its_schema() -> None:
    op, named = described(mixed), arguments()
    grads = [torch.ones(3), None, None, None]
    of_x, parts, maybe, of_bias = derive.laid_out_gradients(op, named, grads, [True, True, True, False])
    assert of_x.shape == (3,)
    assert [one.dtype for one in parts] == [torch.float32, torch.int64]
    assert parts[1].tolist() == [0, 0, 0]
    assert [one.numel() for one in maybe] == [0, 3]
    assert of_bias is None
    assert derive.laid_out_gradients(op, named, grads, [False] * 4) == [None, [], [], None]


@pytest.mark.parametrize("wanted", [[True] * 4, [False] * 4, [True, False, True, False]])
def test_the_fake_gradients_have_the_shapes_and_strides_of_the_real_ones(wanted: list[bool]) -> None:
    op = described(mixed)
    named = arguments(x=torch.randn(3, 2).T, bias=torch.randn(2, 1, 3)[:, 0], parts=[], maybe=[None])
    grads = [torch.ones(2, 3), None, None, None]
    real = derive.laid_out_gradients(op, named, grads, wanted)
    fake = derive.empty_gradients(op, named, grads, wanted)
    assert look(fake) == look(real)


def look(values: list[Any]) -> list[Any]:
    return [(one.shape, one.dtype, one.stride()) if isinstance(one, Tensor) else one and look(one) for one in values]


def test_a_backward_with_its_own_reference_returns_the_strides_of_its_arguments() -> None:
    library = opwright.Library("mine")

    @library.op
    def f(x: Tensor, y: Tensor, parts: Sequence[Tensor]) -> Tensor:
        return x * y + sum(parts)

    @f.backward(saves=("x", "parts"))
    def f_backward(
        grad: Tensor, x: Tensor, parts: Sequence[Tensor], wanted: Sequence[bool]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        return grad.contiguous(), grad * x, [grad.contiguous() for _ in parts] if wanted[2] else []

    x, parts = torch.randn(3, 2).T, [torch.randn(3, 2).T, torch.randn(2, 3)]
    grad = torch.randn(2, 3)
    for make in (derive.kernel, derive.fake):
        of_x, of_y, of_parts = make(f_backward)(grad, x, parts, [True, True, True])
        assert of_x.stride() == x.stride()
        assert of_y.stride() == (grad * x).stride()  # y is not saved
        assert [one.stride() for one in of_parts] == [one.stride() for one in parts]
        assert torch.equal(of_x, grad)
        assert make(f_backward)(grad, x, parts, [True, True, False])[2] == []


def test_a_gradient_has_the_strides_of_its_argument() -> None:
    op = described(product)
    x, y = torch.randn(3, 2).T, torch.randn(2, 3)
    of_x, of_y = derive.laid_out_gradients(op, {"x": x, "y": y}, [torch.ones(1).expand(2, 3)], [True, True])
    assert (of_x.stride(), of_y.stride()) == (x.stride(), y.stride())


def product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def test_complex_arguments_have_gradients() -> None:
    x, y = torch.randn(3, dtype=torch.complex64), torch.randn(3)
    grad = torch.randn(3, dtype=torch.complex64)
    leaves = (x.clone().requires_grad_(), y.clone().requires_grad_())
    wanted = torch.autograd.grad(leaves[0] * leaves[1], leaves, grad)
    found = derive.gradients(described(product), {"x": x, "y": y}, [grad], [True, True])
    torch.testing.assert_close(found, list(wanted))


def identity(x: Tensor) -> Tensor:
    return x


def view(x: Tensor) -> Tensor:
    return x.T[1:]


def twice(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x + 1
    return y, y


def overlapping(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x + 1
    return y, y[1:]


@pytest.mark.parametrize("reference", [identity, view, twice, overlapping])
@pytest.mark.parametrize("make", [derive.kernel, derive.fake, derive.composite])
def test_results_share_no_memory_with_arguments_or_each_other(reference: Any, make: Any) -> None:
    x = torch.randn(3, 3)
    found = derive.tensors(make(described(reference))(x))
    wanted = [one.clone() for one in derive.tensors(reference(x))]
    assert [(one.shape, one.stride()) for one in found] == [(one.shape, one.stride()) for one in wanted]
    assert all(map(torch.equal, found, wanted))
    storages = [one.untyped_storage().data_ptr() for one in (x, *found)]
    assert len(set(storages)) == len(storages)


def test_fake_results_share_no_memory() -> None:
    with FakeTensorMode():
        x = torch.empty(3, 3)
        (found,) = derive.tensors(derive.fake(described(view))(x))
        assert found.shape == (2, 3)
        assert found.untyped_storage()._cdata != x.untyped_storage()._cdata


def test_a_kernel_records_no_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    assert not derive.kernel(described(identity))(x).requires_grad
    assert derive.composite(described(identity))(x).requires_grad


def test_a_hand_written_fake_replaces_the_derived_one() -> None:
    op = described(identity)
    assert derive.fake(op)(torch.ones(2)).tolist() == [1, 1]
    op.fake(torch.zeros_like)
    assert derive.fake(op)(torch.ones(2)).tolist() == [0, 0]


def test_the_derived_fake_kernel_discards_sizes_that_no_result_has() -> None:
    def total_of_positive(x: Tensor) -> Tensor:
        return x[x > 0].sum() + x

    def positive(x: Tensor) -> Tensor:
        return x[x > 0][: x[x < 0].numel()]

    shapes = ShapeEnv()
    mode = FakeTensorMode(shape_env=shapes)
    with mode:
        x = torch.ones(5)
        derive.fake(described(total_of_positive))(x)
        assert shapes.pending_fresh_unbacked_symbols == []
        first = x.nonzero()
        (made,) = derive.tensors(derive.fake(described(positive))(x))
        # PyTorch raises an error if a pending size is in no result.
        assert set(shapes.pending_fresh_unbacked_symbols) == free_unbacked_symbols(first) | free_unbacked_symbols(made)
        assert free_unbacked_symbols(made)


def test_a_fake_kernel_rejects_tensors_on_several_devices() -> None:
    message = "mine::product expected all tensors on one device, got cpu and meta: move them to the same device with"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        derive.fake(described(product))(torch.ones(2), torch.ones(2, device="meta"))


def test_the_default_oracle_is_the_reference_in_float64() -> None:
    op = described(mixed)
    named = arguments()
    (total, whole, parts), given = derive.oracle(op, named)
    assert (given["x"].dtype, given["parts"][1].dtype) == (torch.float64, torch.int64)
    assert (total.dtype, whole.dtype) == (torch.float64, torch.int64)
    assert [one.dtype for one in parts] == [torch.float64, torch.int64]
    op.oracle(lambda *args, **kwargs: (args[0].dtype, kwargs))
    assert derive.oracle(op, named)[0] == (torch.float64, {"power": 3})


def test_the_samples_of_a_backward_match_its_schema() -> None:
    op = described(several)

    @op.samples
    def _(make: Make) -> Iterator[Any]:
        yield make.randn(3), make.randn(3)
        yield make.randn(3), make.randint(0, 5, 3)

    backward = op.backward()
    first, second = derive.backward_samples(op, Make())
    for sample in (first, second):
        backward.bind(sample)
        of_real, of_whole = sample.args[:2]
        assert (of_real.dtype, of_whole) == (torch.float32, None)  # an integer result has no gradient
    assert (first.args[-1], second.args[-1]) == ([True, True], [True, False])


def test_a_sample_without_a_differentiable_result_is_not_a_sample_of_the_backward() -> None:
    op = described(product)

    @op.samples
    def _(make: Make) -> Iterator[Any]:
        yield make.randint(0, 5, 3), make.randint(0, 5, 3)
        yield make.randn(3), make.randn(3)

    op.backward()
    (only,) = derive.backward_samples(op, Make())
    assert only.args[1].dtype == torch.float32


def several(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x * y, x.long()


class Pair(NamedTuple):
    first: Tensor
    second: int


def test_tensors_are_changed_in_every_container_and_lists_are_new() -> None:
    values = {"x": torch.ones(1), "several": [torch.ones(2), 3], "pair": (Pair(torch.ones(3), 4), None, "text")}
    changed = derive.with_tensors(values, lambda tensor: tensor + 1)
    tensor, number = changed["several"]
    assert (changed["x"].tolist(), tensor.tolist(), number) == ([2.0], [2.0, 2.0], 3)
    assert changed["several"] is not values["several"]
    (pair, *rest) = changed["pair"]
    assert isinstance(pair, Pair)
    assert (pair.first.tolist(), pair.second, rest) == ([2.0] * 3, 4, [None, "text"])
    assert values["x"] == 1
