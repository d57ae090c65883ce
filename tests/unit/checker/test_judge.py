"""The judge: the expected results of a call, and the faults in the actual ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.judge import LocalJudge, _may_end_the_gpu

if TYPE_CHECKING:
    from tests.unit.conftest import Describe

DOUBLED = """
@library.op
def doubled(x: Tensor) -> Tensor:
    if x.dim() != 2:
        raise ValueError("x must have two dimensions")
    return 2 * x
"""
COUNTS_CALLS = """
calls = []
@library.op
def counts(x: Tensor) -> Tensor:
    calls.append(1)
    return x + len(calls)
"""


def case(*shape: int) -> Case:
    return Case(
        f"a tensor of {shape}", Family.SAMPLE, {"x": torch.arange(float(torch.Size(shape).numel())).view(shape)}
    )


@pytest.fixture(scope="module")
def judge(describe: Describe) -> LocalJudge:
    return LocalJudge(describe(DOUBLED).ops["doubled"])


def test_an_outline_has_the_shape_and_dtype_of_the_results_but_not_their_numbers(judge: LocalJudge) -> None:
    outline = judge.outline(case(3, 2))
    (own,) = outline.own
    assert (own.shape, own.dtype, outline.refusal) == ((3, 2), torch.float32, "")
    # Separate memory, because the judge keeps the results of the reference.
    (again,) = judge.outline(case(3, 2)).own
    assert own.data_ptr() != again.data_ptr()


def test_an_outline_contains_the_reason_why_the_reference_rejects_a_call(judge: LocalJudge) -> None:
    outline = judge.outline(case(3))
    assert "x must have two dimensions" in outline.refusal
    assert outline.own == ()


def test_a_reference_that_returns_different_results_each_time_is_not_steady(
    describe: Describe, judge: LocalJudge
) -> None:
    assert judge.is_steady(case(2, 2))
    assert not LocalJudge(describe(COUNTS_CALLS).ops["counts"]).is_steady(case(2, 2))


BETWEEN = """
@library.op
def between(x: Tensor, part: Tensor) -> Tensor:
    return x[0] * (1 - part) + x[1] * part

between.backward()
"""


@pytest.mark.parametrize("grad", [float("inf"), float("nan")])
def test_only_infinite_arguments_excuse_a_derived_gradient_that_autograd_makes_nan(
    describe: Describe, grad: float
) -> None:
    judge = LocalJudge(describe(BETWEEN).ops["between_backward"])
    arguments = {
        "grad": torch.tensor([grad, 1.0]),
        "x": torch.tensor([1.0, 3.0]),
        "part": torch.tensor([0.25, 0.5]),
        "wanted": [True, True],
    }
    given = Case("with special values", Family.SPECIAL, arguments)
    of_x = torch.tensor([0.75 * grad + 0.5, 0.25 * grad + 0.5])
    # grad * (x[1] - x[0]): autograd computes grad * x[1] - grad * x[0], which is NaN for an infinite grad.
    assert judge.fault(given, [of_x, torch.tensor([2 * grad, 2.0])]) is None
    assert judge.fault(given, [of_x, torch.tensor([2 * grad, 3.0])]) is not None
    fault = judge.fault(given, [of_x, torch.tensor([0.0, 2.0])])
    assert (fault is None) is (grad == float("inf"))
    claimed = Case("sample 1", Family.SAMPLE, arguments, claimed=True)
    assert (judge.fault(claimed, [of_x, torch.tensor([2 * grad, 2.0])]) is None) is (grad != float("inf"))


CHOOSES = """
@library.op
def chosen(x: Tensor) -> Tensor:
    return x + x.stride(0)
"""


def test_a_result_that_depends_on_the_layout_is_not_expected(describe: Describe) -> None:
    judge = LocalJudge(describe(CHOOSES).ops["chosen"])
    x = torch.arange(6.0).view(2, 3)
    assert judge.fault(Case("plain", Family.SAMPLE, {"x": x}), [x]) is not None
    assert judge.fault(Case("transposed", Family.STRIDES, {"x": x.t()}), [x.t() + 7]) is None


def test_a_sum_in_another_order_does_not_make_a_reference_depend_on_the_layout(describe: Describe) -> None:
    judge = LocalJudge(describe("@library.op\ndef summed(x: Tensor) -> Tensor:\n    return x.sum(0)\n").ops["summed"])
    x = torch.randn(400, 300, generator=torch.Generator().manual_seed(0)).t()
    transposed = Case("transposed", Family.STRIDES, {"x": x})
    right = x.sum(0)
    assert not torch.equal(right, x.contiguous().sum(0))
    assert judge.fault(transposed, [right]) is None
    assert judge.fault(transposed, [right.where(torch.arange(400) != 17, right + 0.1)]) is not None


GATHERED = """
ran = []

@library.op
def gathered(x: Tensor, index: Tensor) -> Tensor:
    ran.append(x.device.type)
    return x[index]
"""


@pytest.mark.parametrize(("largest", "is_refused"), [(2, False), (3, True)])
def test_an_index_that_would_break_the_gpu_is_rejected_on_the_cpu(
    describe: Describe, monkeypatch: pytest.MonkeyPatch, largest: int, *, is_refused: bool
) -> None:
    op = describe(GATHERED).ops["gathered"]
    given = Case("indices", Family.INTEGER, {"x": torch.ones(3), "index": torch.tensor([0, largest])})
    assert not _may_end_the_gpu(given)
    plain = LocalJudge(op)
    assert bool(plain.outline(given).refusal) == is_refused
    # As for a GPU, which runs only calls that the CPU accepts.
    monkeypatch.setattr("opwright.checker.judge._may_end_the_gpu", lambda _: True)
    ran: list[str] = op.reference.__globals__["ran"]
    ran.clear()
    assert LocalJudge(op).outline(given).refusal == plain.outline(given).refusal
    assert len(ran) == (1 if is_refused else 4)
