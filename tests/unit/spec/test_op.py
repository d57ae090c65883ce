from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import pytest
import torch
from torch import Tensor

from opwright.spec import Make, Sample
from tests.unit.spec.conftest import described, raises


def scale(x: Tensor, factor: float = 2.0, *, bias: Optional[Tensor] = None) -> Tensor:
    """`x * factor`, plus `bias`."""
    return x * factor if bias is None else x * factor + bias


def joined(parts: Sequence[Tensor], maybe: Sequence[Optional[Tensor]], count: int) -> tuple[Tensor, int]:
    raise NotImplementedError


def fill(x: Tensor, y: Tensor) -> None:
    x.copy_(y)


def shape(x: Tensor) -> int:
    return x.dim()


def test_an_operator_runs_its_reference_and_has_its_name_and_docstring() -> None:
    op = described(scale)
    assert op(torch.ones(2), 3.0).tolist() == [3, 3]
    assert (op.name, op.qualified_name, repr(op)) == ("scale", "mine::scale", "<Op mine::scale>")
    assert op.__doc__ == "`x * factor`, plus `bias`."
    assert op.has_own_reference


def test_parameters_and_results_are_derived_from_the_schema() -> None:
    op = described(joined)
    assert [(one.name, one.type, one.holds_tensors) for one in op.parameters] == [
        ("parts", "List[Tensor]", True),
        ("maybe", "List[Optional[Tensor]]", True),
        ("count", "int", False),
    ]
    assert op.results == ("Tensor", "int")


@pytest.mark.parametrize(
    ("reference", "names"), [(scale, ("x", "bias")), (joined, ("parts", "maybe")), (shape, ()), (fill, ())]
)
def test_by_default_every_tensor_is_differentiable_if_a_result_is(reference: Any, names: tuple[str, ...]) -> None:
    assert described(reference, mutates=("x",) if reference is fill else ()).differentiable == names


def test_differentiable_arguments_may_be_named_in_any_order() -> None:
    assert described(scale, differentiable=()).differentiable == ()
    assert described(joined, differentiable=("maybe", "parts")).differentiable == ("parts", "maybe")


def test_only_a_tensor_can_be_differentiable() -> None:
    with raises("differentiable='factor' of mine::scale is not a tensor argument: expected some of x, bias"):
        _ = described(scale, differentiable=("factor",)).differentiable


def test_an_operator_that_mutates_has_no_gradient() -> None:
    with raises("mine::fill mutates x, so it has no gradient: return a new tensor instead, or omit differentiable"):
        _ = described(fill, mutates=("x",), differentiable=("y",)).differentiable


def test_one_string_is_not_a_list_of_names() -> None:
    with raises("differentiable='x' is one string; write a list: differentiable=['x']"):
        described(scale, differentiable="x")


def test_a_call_is_bound_to_names_in_their_order_and_spread_again() -> None:
    op = described(scale)
    x, bias = torch.ones(2), torch.zeros(2)
    bound = op.bind(Sample((x,), {"bias": bias}))
    assert list(bound) == ["x", "factor", "bias"]
    assert bound["factor"] == 2.0
    assert op.spread(bound) == ([x, 2.0], {"bias": bias})


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (Sample(), "missing a required argument: 'x'"),
        (Sample((1, 2, 3)), "too many positional arguments"),
        (Sample((1,), {"bigger": 2}), "got an unexpected keyword argument 'bigger'"),
    ],
)
def test_a_sample_that_does_not_match_the_parameters_is_an_error_with_the_reason(sample: Sample, reason: str) -> None:
    with raises(f"a sample of mine::scale does not match its parameters: {reason}"):
        described(scale).bind(sample)


def test_samples_are_drawn_with_the_given_make() -> None:
    op = described(scale)
    assert not op.has_samples

    @op.samples
    def _(make: Make) -> Iterator[Any]:
        yield make.randn(3)
        yield make.randn(3), 4.0
        yield make.call(make.randn(3), bias=make.randn(3))

    assert op.has_samples
    assert op.dtypes == ()
    bare, pair, call = op.draw(Make())
    assert len(bare.args) == 1
    assert pair.args[1] == 4.0
    assert list(call.kwargs) == ["bias"]


def test_samples_may_claim_dtypes() -> None:
    op = described(scale)

    @op.samples(dtypes=(torch.float32, torch.float64))
    def _(make: Make) -> Iterator[Any]:
        yield make.randn(3)

    assert op.dtypes == (torch.float32, torch.float64)
    assert op.has_samples


def test_without_samples_the_error_shows_how_to_add_them() -> None:
    with raises("mine::scale has no samples: add them below it:\n\n@scale.samples\ndef _(make):"):
        described(scale).draw(Make())


def test_hand_written_parts_are_kept() -> None:
    op = described(scale)
    assert (op.hand_written_fake, op.hand_written_oracle, op.hand_written_vmap) == (None, None, None)
    assert not op.claims_vmap
    pieces = [op.fake(lambda x: x), op.oracle(lambda x: x), op.vmap(lambda x: x)]
    assert [op.hand_written_fake, op.hand_written_oracle, op.hand_written_vmap] == pieces
    assert op.claims_vmap
    assert described(scale, vmap=True).claims_vmap


# -- kernels in Python -----------------------------------------------------------------------------------


def test_a_python_kernel_is_kept_for_its_device() -> None:
    op = described(scale)
    assert op.kernel(device="cpu")(scale) is scale
    assert op.python_kernels == {"cpu": scale}


def test_a_kernel_must_have_the_parameters_of_its_operator() -> None:
    with raises("the cpu kernel of mine::scale must have the operator's parameters, (x, factor, bias), but has (x)"):
        described(scale).kernel(device="cpu")(lambda x: x)


def test_a_device_has_only_one_kernel() -> None:
    op = described(scale)
    op.kernel(device="cpu")(scale)
    with raises("mine::scale already has a Python kernel for cpu: keep one of the two"):
        op.kernel(device="cpu")


def test_a_kernel_for_an_unknown_device_is_rejected() -> None:
    with raises("device='tpu' of a kernel of mine::scale is unknown: use cpu or cuda"):
        described(scale).kernel(device="tpu")
