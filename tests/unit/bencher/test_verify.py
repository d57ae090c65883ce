from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from opwright.bencher.implementations import Verified, implementations_of
from opwright.bencher.verify import gradient_fault, result_fault

if TYPE_CHECKING:
    from opwright.bencher.subject import Subject
    from tests.unit.bencher.conftest import MakeSubject

BENT = """
@library.op
def bent(x: Tensor, y: Tensor) -> Tensor:
    return x * y

@bent.samples
def _(make):
    yield make.randn(4), make.randn(4)
"""
WRONG_GRADIENT = """
@bent.backward(saves=("x", "y"))
def bent_backward(grad: Tensor, x: Tensor, y: Tensor, wanted: Sequence[bool]) -> tuple[Tensor, Tensor]:
    return grad * y, grad * y
"""


@pytest.fixture(scope="module")
def bent(make_subject: MakeSubject) -> Subject:
    return make_subject(BENT)


class Half(torch.autograd.Function):
    """Half of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grads[0] * y / 2, grads[0] * x


def test_a_correct_implementation_has_no_fault(bent: Subject) -> None:
    for implementation in (bent.op.reference, torch.mul):
        assert result_fault(bent, implementation) == ""
        assert gradient_fault(bent, implementation) == ""


def test_a_wrong_result_is_reported_with_its_index(bent: Subject) -> None:
    for find_fault in (result_fault, gradient_fault):
        fault = find_fault(bent, torch.add)
        assert fault.startswith("float32 (4,), at [0]: ")
        assert "4 of 4 elements differ" in fault
        assert ", expected at [0]: " in fault


def test_a_wrong_gradient_is_reported_with_its_argument(bent: Subject) -> None:
    assert result_fault(bent, Half.apply) == ""
    assert gradient_fault(bent, Half.apply).startswith("the gradient of x: float32 (4,), at [0]: ")


def test_a_missing_gradient_is_reported(bent: Subject) -> None:
    def cut(x: Tensor, y: Tensor) -> Tensor:
        return x.detach() * y

    assert gradient_fault(bent, cut) == "the gradient of x: none, expected float32 (4,)"
    assert "does not require grad" in gradient_fault(bent, lambda x, y: (x * y).detach())


def test_with_a_wrong_backward_only_forward_is_timed(make_subject: MakeSubject) -> None:
    subject = make_subject(BENT + WRONG_GRADIENT)
    verified = Verified(subject, implementations_of(subject, compiled=False))
    assert verified.refusal("native", "forward") is None
    for direction in ("recorded", "backward", "both"):
        row = verified.refusal("native", direction)
        assert row is not None
        assert (row.status, row.timing) == ("wrong", None)
        assert row.reason.startswith("the gradient of y: ")
        assert verified.refusal("reference", direction) is None


def test_an_operator_that_raises_is_a_fault_but_a_reference_that_does_not_compile_is_not(bent: Subject) -> None:
    def raising(*_: Any) -> Tensor:
        msg = "not today\nnor tomorrow"
        raise ValueError(msg)

    verified = Verified(bent, {"reference": bent.op.reference, "compiled": raising, "native": raising})
    native, compiled = verified.refusal("native", "forward"), verified.refusal("compiled", "forward")
    assert native is not None
    assert compiled is not None
    assert (native.status, native.reason) == ("raises", "ValueError: not today")
    assert (compiled.status, compiled.reason) == ("skipped", "it cannot be compiled: ValueError: not today")


def test_a_reference_that_cannot_be_compiled_is_skipped_with_the_reason(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def jumping(x: Tensor) -> Tensor:
    return x + 1 if x.sum().item() > 0 else x - 1

@jumping.samples
def _(make):
    yield make.randn(4)
""")
    verified = Verified(subject, implementations_of(subject, compiled=True))
    assert list(verified.implementations) == ["reference", "compiled", "native"]
    row = verified.refusal("compiled", "forward")
    assert row is not None
    assert row.status == "skipped"
    assert not row.is_fault
    assert row.reason.startswith("it cannot be compiled: ")


def test_on_a_gpu_the_reference_is_also_compiled_with_cuda_graphs_except_for_a_separate_backward(bent: Subject) -> None:
    on_gpu = bent.twin(bent.arguments)
    on_gpu.device = "cuda"
    found = implementations_of(on_gpu, compiled=True)
    assert list(found) == ["reference", "compiled", "graphed", "native"]
    assert list(implementations_of(on_gpu, compiled=False)) == ["reference", "native"]
    row = Verified(on_gpu, found).refusal("graphed", "backward")
    assert row is not None
    assert (row.status, row.is_fault) == ("skipped", False)
    assert row.reason.startswith("CUDA graphs keep the results of one forward at a time")


def test_gradients_are_not_timed_if_the_reference_has_none(make_subject: MakeSubject) -> None:
    subject = make_subject("""
class Opaque(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

def opaque_backward(ctx, grad):
    raise NotImplementedError("no way back")

@library.op
def opaque(x: Tensor) -> Tensor:
    return Opaque.apply(x)

@opaque.samples
def _(make):
    yield make.randn(4)
""")
    verified = Verified(subject, implementations_of(subject, compiled=False))
    reference, native = verified.refusal("reference", "backward"), verified.refusal("native", "backward")
    assert reference is not None
    assert native is not None
    assert reference.status == native.status == "skipped"
    assert reference.reason.startswith("it has no gradient: ")
    assert native.reason == "the reference has no gradient to compare with"
    assert verified.refusal("native", "forward") is None


def test_a_size_that_the_reference_rejects_is_a_fault_of_the_reference_only(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def picky(x: Tensor) -> Tensor:
    raise ValueError("never")

@picky.samples
def _(make):
    yield make.randn(4)
""")
    verified = Verified(subject, implementations_of(subject, compiled=False))
    statuses = {name: verified.refusal(name, "forward") for name in verified.implementations}
    assert {name: row and row.status for name, row in statuses.items()} == {"reference": "raises", "native": "skipped"}
    assert all(
        row and row.reason.endswith("the reference rejects this size: ValueError: never") for row in statuses.values()
    )
