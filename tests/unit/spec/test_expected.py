from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

import opwright
from opwright.spec.expected import call_results, expected_gradients, expected_results

if TYPE_CHECKING:
    from opwright.spec import Op

library = opwright.Library("answers")


@library.op
def tripled(x: Tensor) -> Tensor:
    return 3 * x


@library.op
def parted(x: Tensor) -> tuple[list[Tensor], Tensor]:
    return [x + 1, x + 2], x + 3


@library.op(mutates=("x",))
def grown(x: Tensor) -> None:
    x.add_(1)


@library.op
def narrow(x: Tensor) -> Tensor:
    if x.element_size() != 4:
        msg = "only 4 bytes"
        raise ValueError(msg)
    return x.sin()


def test_the_oracle_is_the_reference_in_float64() -> None:
    answer = expected_results(tripled, lambda: {"x": torch.tensor([0.1])})
    assert (answer.own[0].dtype, answer.precise[0].dtype) == (torch.float32, torch.float64)
    assert answer.difference([torch.tensor([0.3])]) is None
    wrong = answer.difference([torch.tensor([0.4])])
    assert wrong is not None
    assert wrong.got.startswith("float32 (1,), at [0]: 0.4")


def test_a_reference_without_float64_support_is_its_own_oracle() -> None:
    answer = expected_results(narrow, lambda: {"x": torch.ones(2)})
    assert answer.refusal == ""
    assert answer.precise[0].dtype == torch.float32
    refused = expected_results(narrow, lambda: {"x": torch.ones(2, dtype=torch.int64)})
    assert refused.refusal == "ValueError: only 4 bytes"


def test_mutated_arguments_are_expected_results_and_created_for_each_call() -> None:
    answer = expected_results(grown, lambda: {"x": torch.ones(2)})
    assert [one.tolist() for one in (*answer.own, *answer.precise)] == [[2, 2], [2, 2]]
    x = torch.ones(2)
    assert call_results(grown, None, {"x": x}) == [x]


@pytest.mark.parametrize(
    ("results", "got"),
    [
        (lambda x: [[x + 1, x + 2], x + 4], "result 1: float32 (3,), at [0]"),
        (lambda x: [[x + 1, x + 5], x + 3], "result 0: float32 (3,), at [0]"),
        (lambda x: [[x + 1], x + 3], "result 0: 1 tensors"),
        (lambda x: [x + 3], "1 results"),
    ],
)
def test_a_difference_names_its_result(results: Any, got: str) -> None:
    x = torch.zeros(3)
    answer = expected_results(parted, lambda: {"x": x})
    found = answer.difference(results(x))
    assert found is not None
    assert found.got.startswith(got)
    assert answer.difference([[x + 1, x + 2], x + 3]) is None


def test_gradients_are_expected_in_both_dtypes() -> None:
    grads = expected_gradients(tripled, lambda: {"x": torch.ones(2)}, [torch.tensor([1.0, 0.5])], ["x"])
    own, precise = grads["x"].own, grads["x"].precise
    assert (own.dtype, precise.dtype) == (torch.float32, torch.float64)
    assert own.tolist() == precise.tolist() == [3, 1.5]


def test_gradients_of_a_reference_without_float64_support_are_in_its_dtype() -> None:
    goal = expected_gradients(narrow, lambda: {"x": torch.zeros(1)}, [torch.ones(1)], ["x"])["x"]
    own, precise = goal.own, goal.precise
    assert own is precise
    assert own.tolist() == [1]


@library.op
def squared_root(x: Tensor) -> Tensor:
    return (x * x).sqrt()


@library.op
def cancelled(x: Tensor) -> Tensor:
    return (x + 1e4) - 1e4


@library.op
def counted(x: Tensor) -> Tensor:
    return (x > 0).sum()


@library.op
def far_difference(x: Tensor) -> Tensor:
    return 3 * x - 10 * x


def accurate(op: Any, x: Tensor) -> bool:
    return expected_results(op, lambda: {"x": x}).is_accurate


@pytest.mark.parametrize("scale", [1.0, 1e-15, 1e15])
def test_a_reference_that_rounds_is_accurate(scale: float) -> None:
    assert accurate(squared_root, scale * torch.randn(40))


def test_a_reference_that_overflows_where_float64_does_not_is_inaccurate() -> None:
    assert not accurate(squared_root, torch.tensor([1.0, 1e30]))


@pytest.mark.parametrize("far", [3e38, -3e38])
def test_a_reference_that_overflows_where_its_result_does_is_accurate_if_the_sign_is_right(far: float) -> None:
    x = torch.ones(40)
    assert accurate(far_difference, x)
    x[7] = far
    assert accurate(tripled, x)
    assert not accurate(far_difference, x)  # infinity minus infinity


def test_a_reference_that_underflows_in_most_elements_is_inaccurate() -> None:
    x = torch.full((40,), 1e-30)
    assert not accurate(squared_root, x)
    x[:38] = 1.0
    assert accurate(squared_root, x)


def test_a_reference_that_cancels_is_inaccurate() -> None:
    assert accurate(cancelled, torch.full((4,), 100.0))
    assert not accurate(cancelled, torch.full((4,), 1e-4))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_special_values_that_float64_also_has_are_accurate(number: float) -> None:
    assert accurate(tripled, torch.tensor([1.0, number]))


def test_integers_and_empty_results_are_accurate() -> None:
    assert accurate(counted, torch.randn(4))
    assert accurate(tripled, torch.empty(0))


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        ('NotImplementedError("no kernel")', True),
        ("RuntimeError('\"erf_cpu\" not implemented for Int')", True),
        ('ValueError("x must be positive")', False),
        ('RuntimeError("sizes differ")', False),
    ],
)
def test_only_a_missing_pytorch_kernel_leaves_a_call_unknown(error: str, unknown: bool) -> None:
    scope: dict[str, Any] = {"Tensor": Tensor}
    exec(f"def f(x: Tensor) -> Tensor:\n    raise {error}", scope)
    found = expected_results(opwright.Library("unknown").op(scope["f"]), lambda: {"x": torch.ones(2)})
    assert found.refusal
    assert found.unknown == unknown


@pytest.mark.parametrize(
    ("body", "overflows"),
    [
        ("return x.view(-1).narrow(0, 0, 2**63)", True),
        ("return torch.arange(2**64)", True),
        ("return x * torch.tensor([2**80])", True),
        ("raise RuntimeError('value cannot be converted to type int64_t without overflow')", True),
        ("return x[: 2**63 - 1].view(2**40, 2**40)", False),
        ("raise OverflowError('n must be at most 5')", False),
    ],
)
def test_only_an_integer_that_pytorch_cannot_hold_is_an_overflow(body: str, *, overflows: bool) -> None:
    scope: dict[str, Any] = {"Tensor": Tensor, "torch": torch}
    exec(f"def f(x: Tensor) -> Tensor:\n    {body}", scope)
    found = expected_results(opwright.Library("overflow").op(scope["f"]), lambda: {"x": torch.ones(2)})
    assert found.refusal
    assert found.overflows == overflows, found.refusal


@library.op
def through_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() * 2)


@library.op
def spectrum(x: Tensor) -> Tensor:
    return torch.view_as_real(torch.fft.rfft(x))


@library.op
def inverse(x: Tensor) -> Tensor:
    return torch.inverse(x)


@library.op
def lower(x: Tensor) -> Tensor:
    factor: Tensor = torch.linalg.cholesky(x @ x.T)
    return factor


@pytest.mark.parametrize(
    ("op", "x"),
    [
        (through_numpy, torch.ones(4).bfloat16()),
        (through_numpy, torch._neg_view(torch.ones(4))),
        (spectrum, torch.ones(4).half()),
        (inverse, torch.eye(4).bfloat16()),
        (squared_root, torch.ones(2).to(torch.float8_e4m3fn)),
    ],
)
def test_an_unsupported_dtype_or_view_leaves_a_call_unknown(op: Op, x: Tensor) -> None:
    assert expected_results(op, lambda: {"x": x}).unknown
    known = expected_results(op, lambda: {"x": x.float().resolve_neg()})
    assert (known.refusal, known.unknown) == ("", False)


def test_a_matrix_that_only_rounding_makes_singular_leaves_a_call_unknown() -> None:
    assert expected_results(lower, lambda: {"x": torch.tensor([[1.0], [1.0 + 2.0**-12]])}).unknown
    zero = expected_results(inverse, lambda: {"x": torch.zeros(3, 3)})
    assert "singular" in zero.refusal
    assert not zero.unknown


@library.op
def above_mean(x: Tensor) -> Tensor:
    return x[x > x.mean()]


def test_a_shape_that_depends_on_rounding_may_differ() -> None:
    constant = torch.full((11,), 0.1)
    answer = expected_results(above_mean, lambda: {"x": constant})
    assert answer.difference([constant[:0]]) is None
    assert answer.difference([constant]) is None
    assert answer.difference([constant[None]]) is not None
    clear = torch.arange(10.0)
    wrong = expected_results(above_mean, lambda: {"x": clear}).difference([clear[6:]])
    assert wrong is not None
    assert wrong.sort == "type"


@library.op
def guarded(x: Tensor) -> Tensor:
    return x * 2


@guarded.oracle
def _(x: Tensor) -> Tensor:
    if x.isnan().any():
        msg = "no NaN"
        raise ValueError(msg)
    return x * 2


def test_an_oracle_that_raises_leaves_the_call_unknown() -> None:
    found = expected_results(guarded, lambda: {"x": torch.tensor([float("nan")])})
    assert (found.refusal, found.unknown) == ("ValueError: no NaN", True)


@library.op
def newton(x: Tensor) -> Tensor:
    guess = x
    while True:
        better = (guess + x / guess) / 2
        if bool((better - guess).abs().max() <= 1e-7 * x.abs().max()):
            return better
        guess = better


def test_a_reference_that_does_not_terminate_is_stopped() -> None:
    found = expected_results(newton, lambda: {"x": torch.tensor([float("nan")])}, limit_s=0.05)
    assert (found.refusal, found.unknown) == ("the reference was stopped after 0.05 s", True)
    answer = expected_results(newton, lambda: {"x": torch.tensor([2.0, 3.0], dtype=torch.float64)}, limit_s=0.05)
    assert answer.difference([torch.tensor([2.0, 3.0], dtype=torch.float64).sqrt()]) is None
    assert answer.difference([torch.tensor([2.0, 3.0], dtype=torch.float64)]) is not None  # although no draw finishes


@library.op
def modulus(z: Tensor, w: Tensor) -> Tensor:
    return (z.abs() * w).sum(-1)


def test_complex_numbers_are_widened_with_real_ones() -> None:
    z, w = torch.randn(9, 700, dtype=torch.complex64), torch.randn(9, 700)
    answer = expected_results(modulus, lambda: {"z": z, "w": w})
    exact = (z.to(torch.complex128).abs() * w.double()).sum(-1)
    torch.testing.assert_close(answer.precise[0], exact, rtol=1e-14, atol=0)


@library.op
def normal(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x)


def test_where_float64_cancels_to_zero_a_smaller_number_is_right() -> None:
    x = torch.tensor([-9.0, 1.0])
    answer = expected_results(normal, lambda: {"x": x})
    assert answer.precise[0][0] == 0
    right = 0.5 * x * torch.erfc(-x / 2**0.5)
    assert right[0] != 0
    assert answer.difference([right]) is None
    for wrong in (-1e-10, 1e-3, float("nan")):
        assert answer.difference([torch.tensor([wrong, right[1]])]) is not None


@library.op
def softplus(x: Tensor) -> Tensor:
    return x.exp().log1p()


def test_an_oracle_that_overflows_is_not_finite() -> None:
    assert expected_results(softplus, lambda: {"x": torch.randn(4)}).is_finite
    assert not expected_results(softplus, lambda: {"x": torch.tensor([1.0, 1e4])}).is_finite
    assert expected_results(softplus, lambda: {"x": torch.tensor([1.0, 100.0])}).is_finite


@library.op
def biased(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x @ weight + bias


def test_one_float64_argument_does_not_make_a_computation_in_float32_wrong() -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(40, 40, generator=generator) for _ in range(2))
    given = {"x": x, "weight": weight, "bias": torch.zeros(40, dtype=torch.float64)}
    answer = expected_results(biased, lambda: dict(given))
    # In another order, with other rounding errors where the sum is near zero.
    summed = torch.stack([x[:, at, None] * weight[at] for at in reversed(range(40))]).cumsum(0)[-1]
    assert answer.difference([summed.double()]) is None
    assert answer.difference([(summed + 1e-3).double()]) is not None


def test_a_reference_that_computes_in_float64_requires_it_for_mixed_arguments() -> None:
    given = {"x": torch.randn(40, 40, generator=torch.Generator().manual_seed(0)).double()}
    given |= {"weight": torch.eye(40, dtype=torch.float64), "bias": torch.ones(40)}
    answer = expected_results(biased, lambda: dict(given))
    exact = given["x"] + 1
    assert answer.difference([exact]) is None
    assert answer.difference([exact.float().double()]) is not None


def test_a_reference_that_runs_out_of_memory_leaves_the_call_unknown() -> None:
    @library.op
    def enormous(x: Tensor) -> Tensor:
        msg = "CUDA out of memory"
        raise torch.OutOfMemoryError(msg)

    found = expected_results(enormous, lambda: {"x": torch.ones(2)})
    assert found.unknown
    assert "out of memory" in found.refusal
