"""Tests of faults in gradients that are requested again, later, or from several threads."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
from torch import Tensor
from torch.autograd import Function

from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from tests.unit.checker.gradients.conftest import Judge

CALL: dict[str, Any] = {
    "reference": "x * x * y",
    "samples": "make.randn(4, 5), make.randn(4, 5)",
    "parameters": "x: Tensor, y: Tensor",
}


class Right(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return 2 * g * (x * y).conj(), g * (x * x).conj()


class InTheMemoryOfAnArgument(Right):
    """Writes a gradient into the memory of an argument."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        of_x, of_y = Right.backward(ctx, g)
        return of_x, ctx.saved_tensors[1].data.copy_(of_y)


class KeptInTheGraph(Right):
    """Computes its gradients once, and returns the same tensors each time."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if not hasattr(ctx, "kept"):
            ctx.kept = Right.backward(ctx, g)
        return ctx.kept


class WithoutVersions(Right):
    """Saves its arguments in a way that bypasses PyTorch's version check."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.x = x.detach()
        ctx.save_for_backward(y)
        return x * x * y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, (y,) = ctx.x, ctx.saved_tensors
        return 2 * g * (x * y).conj(), g * (x * x).conj()


class OfTheResult(Right):
    """Saves its result in a way that bypasses PyTorch's version check."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        result = Right.forward(ctx, x, y)
        ctx.kept = result.detach()
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return 2 * g * (x * y).conj() + (ctx.kept - x * x * y), g * (x * x).conj()


def copies(*arguments: Tensor) -> tuple[Tensor, ...]:
    """Copies that belong to no graph: PyTorch 2.13 has crashed while threads shared the tensors of their graphs."""
    return tuple(argument.detach().clone() for argument in arguments)


class InOneBuffer(Right):
    """Saves only the arguments of the last call."""

    kept: Any = None

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        InOneBuffer.kept = copies(x, y)
        return Right.forward(ctx, x, y)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        kept = InOneBuffer.kept
        x, y = kept if kept[0].shape == g.shape else ctx.saved_tensors
        return 2 * g * (x * y).conj(), g * (x * x).conj()


class InOneBufferOfAllThreads(Right):
    """Saves only the arguments of the last call of any thread; each backward waits for the other thread's call."""

    kept: Any = None
    both = threading.Barrier(2)

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        InOneBufferOfAllThreads.kept = copies(x, y)
        return Right.forward(ctx, x, y)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if threading.current_thread() is threading.main_thread():
            return Right.backward(ctx, g)
        with contextlib.suppress(threading.BrokenBarrierError):
            InOneBufferOfAllThreads.both.wait(timeout=20)
        x, y = InOneBufferOfAllThreads.kept
        return 2 * g * (x * y).conj(), g * (x * x).conj()


@pytest.mark.parametrize(
    ("function", "kind", "case", "got"),
    [
        (
            InTheMemoryOfAnArgument,
            Kind.ALIAS,
            "gradients of two calls of backward()",
            "the gradient of y shares memory with y",
        ),
        (
            KeptInTheGraph,
            Kind.STATE,
            "gradients after the first ones were overwritten",
            "after the gradients of an earlier backward were overwritten in place, the gradient of x: ",
        ),
        (
            WithoutVersions,
            Kind.WRONG_GRADIENT,
            "gradients after x was changed in place",
            "after an in-place change of x between the call and its backward, the gradient of x: ",
        ),
        (
            OfTheResult,
            Kind.WRONG_GRADIENT,
            "gradients after the results were changed in place",
            "after an in-place change of the results between the call and its backward, the gradient of x: ",
        ),
        (InOneBuffer, Kind.STATE, "gradients of a call after another call", "after another call, the gradient of x: "),
        (
            InOneBufferOfAllThreads,
            Kind.RACE,
            "gradients from two threads at once",
            "from two threads at once, the gradient of x: ",
        ),
    ],
)
def test_gradients_that_are_right_only_immediately_are_found(
    judge: Judge, function: type[Right], kind: Kind, case: str, got: str
) -> None:
    found = {failure.kind: failure for failure in judge(kernel=function.apply, **CALL).failures}
    assert kind in found
    assert found[kind].case == f"sample 1: {case}"
    assert found[kind].got.startswith(got)
    if kind is Kind.WRONG_GRADIENT:
        expected = "an error, as for tensors saved with save_for_backward, or the gradient"
        assert found[kind].expected.startswith(expected)


def test_gradients_that_can_be_requested_again_pass(judge: Judge) -> None:
    assert judge(kernel=Right.apply, **CALL).failures == ()
