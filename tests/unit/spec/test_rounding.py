from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils import _pytree as pytree

from opwright.spec.difference import Goal, differs
from opwright.spec.rounding import Nearby

if TYPE_CHECKING:
    from collections.abc import Callable


def goal(function: Callable[..., Any], *arguments: Any) -> Goal:
    """What `function` should return for `arguments`, with its oracle in float64."""

    def evaluate(change: Callable[[Any], Any]) -> list[Any]:
        return pytree.tree_leaves(function(*pytree.tree_map(change, arguments)))

    wide = pytree.tree_map_only(
        Tensor, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor, arguments
    )
    return Goal(function(*arguments), function(*wide), Nearby(evaluate, arguments))


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def changed(tensor: Tensor, place: int, factor: float) -> Tensor:
    other = tensor.clone()
    other.view(-1)[place] *= factor
    return other


def test_a_small_result_next_to_large_ones_has_a_small_budget() -> None:
    wanted = goal(torch.exp, 20 * randn(528))
    small = int(wanted.own.argmin())
    assert differs(wanted.own, wanted) is None
    assert differs(changed(wanted.own, small, 0.0), wanted) is not None
    assert differs(changed(wanted.own, small, 1.001), wanted) is not None


def test_only_elements_with_cancellation_have_a_large_budget() -> None:
    x = torch.tensor([[1e4, -1e4, 1e-3], [1e-3, 2e-3, 3e-3]])
    wanted = goal(lambda x: x.sum(1), x)
    assert differs(changed(wanted.own, 0, 1.5), wanted) is None
    assert differs(changed(wanted.own, 1, 1.001), wanted) is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_numbers_are_exact_when_read_and_rounded_when_stored(dtype: torch.dtype) -> None:
    x, y = torch.tensor([1.0, 1.0], dtype=dtype), torch.tensor([1.0 - torch.finfo(dtype).eps, 0.5], dtype=dtype)
    wanted = goal(torch.sub, x, y)  # exact, although the first one cancels
    for place in range(2):
        assert differs(changed(wanted.own, place, 0.0), wanted) is not None
    # The square is rounded before 1 is subtracted, so that the difference may be 0.
    stored = goal(lambda x: (x * x) - 1, 1 + torch.finfo(dtype).eps * torch.ones(1, dtype=dtype))
    assert float(stored.precise) != 0
    assert differs(torch.zeros(1, dtype=dtype), stored) is None


ADDITIONS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], tuple[int, ...]]] = {
    "linear": (functional.linear, lambda x, w, b: x @ w.T + b, (1, 1)),
    "conv1d": (functional.conv1d, lambda x, w, b: functional.conv1d(x, w) + b.view(-1, 1), (1, 1, 1)),
    "addcmul": (lambda x, w, b: torch.addcmul(b, x, w), lambda x, w, b: x * w + b, (1,)),
}


@pytest.mark.parametrize("name", ADDITIONS)
def test_products_may_be_rounded_before_they_are_added(name: str) -> None:
    fused, apart, shape = ADDITIONS[name]
    x, w = (torch.full(shape, number, dtype=torch.bfloat16) for number in (1.2421875, 1.3671875))
    bias = -(x * w).reshape(1)
    wanted = goal(fused, x, w, bias)
    assert float(wanted.precise) != 0
    cancelled = apart(x, w, bias)
    assert float(cancelled) == 0
    assert differs(cancelled, wanted) is None
    assert differs(cancelled, goal(fused, x, w, -4 * bias)) is not None


@pytest.mark.parametrize(
    ("x", "error"),
    [(randn(20000), 0.1), *((torch.full((5000,), number), -2 * number) for number in (0.1, 0.7, 1.3, 42.42))],
)
def test_a_sequential_sum_is_right(x: Tensor, error: float) -> None:
    total = torch.zeros(())
    for number in x:
        total += number
    assert differs(total, goal(lambda x: x.sum(), x)) is None
    assert differs(total + error, goal(lambda x: x.sum(), x)) is not None


def test_a_sequential_sum_over_several_dimensions_is_right() -> None:
    # The gradient of weights: a product for each of 40 x 40 vectors. Equal ones are always rounded equally.
    x, grad = (randn(1, 40, 20).repeat(40, 1, 1), randn(1, 40, 24).flip(1).repeat(40, 1, 1))
    wanted = goal(lambda grad, x: torch.einsum("bto,bti->oi", grad, x), grad, x)
    total = torch.zeros(24, 20)
    for row, vector in zip(grad.flatten(0, 1), x.flatten(0, 1), strict=True):
        total += torch.outer(row, vector)
    assert differs(total, wanted) is None
    assert differs(changed(total, 5, 1.001), wanted) is not None


def test_results_for_an_infinite_argument_have_a_budget() -> None:
    def gate(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.expm1(torch.sigmoid(torch.addmm(bias, x, weight)) - 0.75)

    x = randn(6, 5)
    x[2, 3] = float("inf")
    wanted = goal(gate, x, randn(5, 4), randn(4))
    assert wanted.nearby is not None
    assert all(bool(draw.isfinite().all()) for draw in wanted.nearby.leaf(0, 2.0**-23))


def test_numbers_that_are_added_to_one_element_are_a_sum() -> None:
    def total(x: Tensor) -> Tensor:
        return x.new_zeros(1).index_put((torch.zeros(len(x), dtype=torch.int64),), x, accumulate=True)

    x = randn(20000)
    wanted = goal(total, x)
    assert differs(x.cumsum(0)[-1:], wanted) is None
    assert wanted.nearby is not None
    spread = (torch.stack(wanted.nearby.leaf(0, 2.0**-23)) - wanted.precise).abs().max()
    assert differs((wanted.precise + 30 * spread).float(), wanted) is None


def test_a_large_tensor_without_sums_has_no_budget_for_sums() -> None:
    x = 1000 + randn(2**16)
    wanted = goal(lambda x: x.sin(), x)
    assert differs((wanted.precise + x * 2.0**-23 * x.double().cos()).float(), wanted) is None
    assert differs((wanted.precise + 20 * x * 2.0**-23 * x.double().cos()).float(), wanted) is not None


def test_another_sign_of_the_reference_leaves_no_budget_between_both_signs() -> None:
    matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    wanted = goal(lambda matrix: torch.linalg.eigh(matrix)[1], matrix)
    flipped = Goal(-wanted.own, wanted.precise, wanted.nearby)
    assert differs(wanted.own, flipped) is None
    assert differs(-wanted.own, flipped) is None
    assert differs(1.001 * wanted.own, flipped) is not None
    assert differs(torch.zeros(2, 2), flipped) is not None


def test_a_variance_as_a_difference_of_squares_is_wrong() -> None:
    x = 1e3 + randn(64, 64)
    lossy = (x.square().mean(1) - x.mean(1).square()).clamp_min(0)
    assert differs(lossy, goal(lambda x: x.var(1, correction=0), x)) is not None


def test_a_number_that_a_kernel_stores_in_single_precision_is_right() -> None:
    x, bound = randn(8).abs() * 1e3, 1e3 + 1e-9
    near = torch.tensor(bound, dtype=torch.float32) - x
    assert differs(near, goal(lambda x, bound: bound - x, x, bound)) is None


def test_a_tie_is_decided_by_the_oracle() -> None:
    wanted = goal(torch.round, torch.tensor([0.5, 1.5, 2.5, 3.2]))
    assert differs(torch.tensor([0.0, 2.0, 2.0, 3.0]), wanted) is None
    assert differs(torch.tensor([1.0, 2.0, 3.0, 3.0]), wanted) is not None


@pytest.mark.parametrize(
    ("dtype", "clear", "right", "wrong"), [(torch.float32, 0.25, 2.0, 3.0), (torch.float64, 0.25 + 1e-9, 3.0, 2.0)]
)
def test_near_a_jump_only_the_results_on_both_sides_are_right(
    dtype: torch.dtype, clear: float, right: float, wrong: float
) -> None:
    def is_right(*result: float) -> bool:
        return differs(torch.tensor(result, dtype=dtype), wanted) is None

    # 0.35 * 10 is 3.5 in float32, but less in float64: the result depends on rounding.
    wanted = goal(lambda x: (10 * x).round(), torch.tensor([0.35, clear], dtype=dtype))
    assert [is_right(number, right) for number in (2.0, 3.0, 3.5, 4.0, 5.0)] == [False, True, False, True, False]
    assert not is_right(4.0, wrong)


def test_a_result_that_cancels_in_float64_has_a_budget_only_for_rounding() -> None:
    def standardized(x: Tensor) -> Tensor:
        deviation = x - x.mean()
        return deviation / (deviation.square().mean() + 1e-5).sqrt()

    # For equal numbers, each deviation is 0, or the rounding error of their mean: up to N / 4 roundings.
    wanted = goal(standardized, torch.full((4096,), -0.7308, dtype=torch.float64))
    rounding = 0.7308 * 2.0**-53 / 1e-5**0.5
    assert differs(torch.full_like(wanted.own, rounding), wanted) is None
    assert differs(torch.full_like(wanted.own, 10000 * rounding), wanted) is not None


def test_an_index_may_differ_if_it_depends_on_rounding_but_not_at_a_tie() -> None:
    wanted = goal(lambda x: x.argmax(1), torch.tensor([[1.0, 1.0 + 2**-23, 0.0], [2.0, 2.0, 1.0]]))
    assert differs(torch.tensor([0, 0]), wanted) is None
    assert differs(torch.tensor([2, 0]), wanted) is not None
    assert differs(torch.tensor([1, 1]), wanted) is not None


def test_a_result_at_the_edge_of_a_domain_may_be_nan() -> None:
    wanted = goal(lambda x: (1 - x).sqrt(), torch.tensor([1 - 2**-24, 0.5]))
    assert differs(torch.tensor([float("nan"), wanted.own[1]]), wanted) is None
    assert differs(torch.tensor([wanted.own[0], float("nan")]), wanted) is not None


def test_zero_is_not_moved() -> None:
    wanted = goal(torch.sign, torch.tensor([0.0, -0.0, 1.0]))
    assert differs(torch.tensor([1.0, 0.0, 1.0]), wanted) is not None


def test_labels_among_other_numbers_are_not_moved() -> None:
    def loss(x: Tensor, label: Tensor) -> Tensor:
        return torch.where(label == 1, x, -x).sum()

    x, label = randn(6), torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    wanted = goal(loss, x, label)
    assert differs(wanted.own * 1.001, wanted) is not None
    assert differs(wanted.own * (1 + 2**-21), wanted) is None


def test_arguments_that_are_the_same_tensor_stay_the_same() -> None:
    x = randn(5)
    wanted = goal(torch.sub, x, x)
    assert differs(torch.full((5,), 1e-7), wanted) is not None


def test_an_oracle_that_rejects_other_numbers_leaves_the_error_of_the_reference() -> None:
    x = torch.tensor([1.0, 3.0])

    def evaluate(_: Callable[[Any], Any]) -> list[Any]:
        raise ValueError

    own, precise = torch.tensor([1.0, 3.001]), torch.tensor([1.0, 3.0], dtype=torch.float64)
    wanted = Goal(own, precise, Nearby(evaluate, (x,)))
    assert differs(torch.tensor([1.0, 3.005]), wanted) is None
    assert differs(torch.tensor([1.0, 3.02]), wanted) is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_every_precision_has_its_budget(dtype: torch.dtype) -> None:
    x = randn(64).to(dtype)
    wanted = goal(lambda x: x.sin(), x)
    eps = torch.finfo(dtype).eps
    assert differs((x.double().sin() * (1 + eps)).to(dtype), wanted) is None
    assert differs((x.double().sin() * (1 + max(64 * eps, 1e-8))).to(dtype), wanted) is not None
