"""References that request float32 are still precise oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

import opwright
from opwright.spec.expected import Expected, expected_gradients, expected_results
from opwright.spec.float64 import in_float64, precisely

if TYPE_CHECKING:
    from opwright.spec import Op

library = opwright.Library("steps_in_float32")
TABLE = torch.linspace(0, 1, 12)


@library.op
def layer_norm(x: Tensor) -> Tensor:
    wide = x.float()
    centred = wide - wide.mean(-1, keepdim=True)
    return (centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()).to(x.dtype)


@library.op
def rotary(x: Tensor) -> Tensor:
    steps = torch.arange(x.shape[0]).float()
    rates = 1.0 / (10000 ** (torch.arange(0, x.shape[1], 2).float() / x.shape[1]))
    angles = torch.outer(steps, rates)
    even, odd = x[:, 0::2], x[:, 1::2]
    return torch.cat([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], 1)


@library.op
def table(x: Tensor) -> Tensor:
    return (x * TABLE.exp()).sum(-1, dtype=torch.float32) + torch.mv(x.float(), TABLE)


@library.op
def quantized(x: Tensor) -> Tensor:
    return x.half().float() * 3


@library.op
def complex_scaled(z: Tensor, by: Tensor) -> Tensor:
    if (z.dtype, by.dtype) != (torch.complex64, torch.float32):
        msg = "z must be complex64, and by float32"
        raise TypeError(msg)
    return z * by


@library.op
def single_scaled(x: Tensor, by: Tensor) -> Tensor:
    if x.dtype != torch.float32:
        msg = "x must be float32"
        raise TypeError(msg)
    return x * by


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def expected(op: Op, x: Tensor) -> Expected:
    return expected_results(op, lambda: {"x": x})


@pytest.mark.parametrize("op", [layer_norm, rotary, table], ids=lambda op: op.name)
@pytest.mark.parametrize("seed", range(4))
def test_a_right_result_is_accepted_and_a_wrong_element_is_found(op: Op, seed: int) -> None:
    x = randn(300, 12, seed=seed)
    answer = expected(op, x)
    with in_float64(x):
        exact = op.reference(x.double())
    assert exact.dtype == torch.float64
    assert torch.equal(answer.precise[0], exact)
    assert answer.difference([exact.float()]) is None
    assert answer.difference([op.reference(x)]) is None
    wrong = exact.float()
    wrong.view(-1)[-1] *= 1.001
    assert answer.difference([wrong]) is not None


def test_a_sum_in_another_order_is_accepted() -> None:
    x = randn(64, 5000)
    mean = torch.zeros(64)
    for column in x.unbind(1):
        mean += column
    centred = x - (mean / 5000)[:, None]
    found = centred / (centred.square().sum(-1, keepdim=True) / 5000 + 1e-5).sqrt()
    assert expected(layer_norm, x).difference([found]) is None


def test_gradients_are_precise() -> None:
    x, grad = randn(40, 12), randn(40, 12, seed=1)
    goal = expected_gradients(layer_norm, lambda: {"x": x}, [grad], ["x"])["x"]
    leaf = x.double().requires_grad_()
    with in_float64(x):
        (exact,) = torch.autograd.grad(layer_norm.reference(leaf), leaf, grad.double())
    torch.testing.assert_close(goal.precise, exact, rtol=1e-12, atol=1e-14)
    assert goal.nearby.in_float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_reference_that_accepts_only_one_dtype_is_precise(dtype: torch.dtype) -> None:
    @opwright.Library("of_one_dtype").op
    def op(x: Tensor) -> Tensor:
        if x.dtype != dtype:
            msg = f"x must be {dtype}, got {x.dtype}"
            raise TypeError(msg)
        made: Tensor = layer_norm.reference(x)
        assert made.dtype == x.dtype
        return made

    x, grad = randn(40, 12).to(dtype), randn(40, 12, seed=1).to(dtype)
    with in_float64(x):
        exact = layer_norm.reference(x.double())
    answer = expected(op, x)
    assert torch.equal(answer.precise[0], exact)
    assert answer.nearby is not None
    assert answer.nearby.in_float64
    assert len(answer.nearby.draws(answer.nearby.eps)) == 6
    goal = expected_gradients(op, lambda: {"x": x}, [grad], ["x"])["x"]
    assert goal.nearby.in_float64
    assert goal.precise.dtype == torch.float64
    with pytest.raises(TypeError, match=r"x must be torch\.float"):
        op.reference(x.double())


def test_complex_tensors_report_their_dtype_next_to_real_ones() -> None:
    z = torch.complex(randn(5), randn(5, seed=1))
    answer = expected_results(complex_scaled, lambda: {"z": z, "by": torch.ones(5)})
    assert answer.precise[0].dtype == torch.complex128


def test_a_reference_that_rejects_float64_with_another_precision_is_its_own_oracle() -> None:
    answer = expected_results(single_scaled, lambda: {"x": randn(5), "by": torch.ones(5, dtype=torch.bfloat16)})
    assert answer.precise[0].dtype == torch.float32


def test_an_error_that_occurs_in_every_precision_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        precisely(randn(5), lambda: 0, lambda zero: 1 / zero)


def test_a_conversion_to_a_coarser_dtype_than_the_arguments_rounds_on_purpose() -> None:
    x = torch.tensor([1.0 + 2.0**-13, 2.0])
    assert expected(quantized, x).precise[0].tolist() == [3, 6]
    half = x.half()
    assert expected(layer_norm, half[None]).precise[0].dtype == torch.float64


def test_new_tensors_are_in_float64() -> None:
    with in_float64(torch.ones(1)):
        made = [
            torch.zeros(1),
            torch.arange(0.0, 1.0, 0.1),
            torch.linspace(0, 1, 4),
            torch.eye(2),
            torch.full((1,), 0.1),
        ]
        assert {tensor.dtype for tensor in made} == {torch.float64}
        assert torch.zeros(1, dtype=torch.float16).dtype == torch.float16
        assert torch.arange(3).dtype == torch.int64
        assert torch.get_default_dtype() == torch.float32  # it is shared with other threads
    assert torch.zeros(1).dtype == torch.float32
