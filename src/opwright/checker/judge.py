"""Judges results: computes the expected results of calls, and finds the faults in the actual ones."""

from __future__ import annotations

import functools
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import LARGE_BYTES, Family, is_far
from opwright.checker.cases.sharing import writes_to_shared_memory
from opwright.checker.compare import fault_of
from opwright.spec import derive, expected
from opwright.spec.time_limit import LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.cases.case import Case
    from opwright.checker.verdict import Failure
    from opwright.spec import Op
    from opwright.spec.expected import Expected

# The time limit of the reference for a variation, in seconds of CPU time: an iteration may never converge for NaN.
_VARIATION_LIMIT_S = 5.0
# The maximum number of calls whose expected results are kept.
_MOST_KEPT = 512


@dataclass(frozen=True)
class Outline:
    """The expected results of a call without their numbers, as the process of an operator receives them.

    Attributes:
        refusal: why the reference rejects the arguments, which the operator must reject too; empty if it accepts them.
        unknown: whether the reference fails only because PyTorch lacks a kernel, which proves nothing about the call.
        overflows: whether the reference fails only because one of its integers exceeds 64 bits: the operator may accept
            the arguments or reject them, but not crash.
        is_accurate: whether the reference itself stays finite and accurate in its own precision.
        is_finite: whether the oracle's results are finite.
        own: results of the same shapes, dtypes and devices, without the numbers.
    """

    refusal: str = ""
    unknown: bool = False
    overflows: bool = False
    is_accurate: bool = True
    is_finite: bool = True
    own: tuple[Any, ...] = ()


class Judge(Protocol):
    """Judges the results of one operator."""

    def outline(self, case: Case) -> Outline:
        """The expected results of a call, without their numbers."""

    def fault(self, case: Case, results: list[Any]) -> Failure | None:
        """The fault in the results of a call; None if they are correct."""

    def is_steady(self, case: Case) -> bool:
        """Whether the reference returns the same results when called again."""

    def forget(self, case: Case) -> None:
        """Free the stored results of a call."""

    def has_samples(self, cases: list[Case]) -> bool:
        """Whether the judge draws the same samples."""


class LocalJudge:
    """A judge in this process.

    Args:
        op: the operator.
    """

    def __init__(self, op: Op) -> None:
        self._op = op
        self._expected: OrderedDict[str, Expected] = OrderedDict()

    def outline(self, case: Case) -> Outline:
        """The expected results of a call, without their numbers."""
        wanted = self._wanted(case)
        if wanted.refusal:
            return Outline(wanted.refusal, wanted.unknown, wanted.overflows)
        if any(tensor.is_meta for tensor in derive.tensors(list(wanted.own))):
            return Outline(own=wanted.own)
        own = derive.with_tensors(wanted.own, _without_numbers)
        return Outline("", wanted.unknown, is_accurate=wanted.is_accurate, is_finite=wanted.is_finite, own=own)

    def fault(self, case: Case, results: list[Any]) -> Failure | None:
        """The fault in the results of a call; None if they are correct."""
        wanted = self._wanted(case)
        fault = fault_of(self._op, case, wanted, results)
        if fault is None or wanted.refusal:
            return fault
        if self._depends_on_the_layout(case, wanted):
            return None
        if self._op.has_own_reference or case.claimed:
            return fault
        return fault_of(self._op, case, wanted, self._with_known_gradients(case, wanted, results))

    def is_steady(self, case: Case) -> bool:
        """Whether the reference returns the same results when called again."""
        return self._agrees(case, self._wanted(case))

    def forget(self, case: Case) -> None:
        """Free the stored results of a call."""
        self.forget_name(case.name)

    def has_samples(self, cases: list[Case]) -> bool:  # noqa: ARG002  a judge in this process uses its caller's samples
        """Whether the judge draws the same samples."""
        return True

    def forget_name(self, name: str) -> None:
        """Free the stored results of the call with that name."""
        self._expected.pop(name, None)

    def _depends_on_the_layout(self, case: Case, wanted: Expected) -> bool:
        """Whether the reference returns different numbers for the same arguments in contiguous memory.

        Its numbers are then an arbitrary choice, such as the index of one of several equal medians, and others are
        right too.
        """
        given = derive.tensors(case.arguments)
        if self._op.mutates or all(one.is_contiguous() for one in given) or any(map(is_far, given)):
            return False
        again = expected.expected_results(self._op, case.contiguous().plain)
        return not again.refusal and wanted.difference(again.own, self._op.tolerance) is not None

    def _with_known_gradients(self, case: Case, wanted: Expected, results: list[Any]) -> list[Any]:
        """`results`, with the reference's where only infinite arguments make a derived gradient infinite or NaN.

        In such places g * (b - a) and autograd's g * b - g * a differ, and both are right.
        """
        without = expected.expected_results(self._op, lambda: derive.with_tensors(case.plain(), _without_infinities))
        if without.refusal or len(results) != len(wanted.own):
            return results

        def known(result: Any, own: Any, finite: Any) -> Any:
            if not all(isinstance(one, Tensor) for one in (result, own, finite)):
                return result
            if result.shape != own.shape or result.dtype != own.dtype or finite.shape != own.shape:
                return result
            return torch.where(finite.isfinite() & ~own.isfinite(), own, result.detach())

        listed = (results, list(wanted.own), list(without.own))
        if len({pytree.tree_structure(one) for one in listed}) > 1:
            return results
        made: list[Any] = pytree.tree_map(known, *listed)
        return made

    def _agrees(self, case: Case, wanted: Expected) -> bool:
        """Whether the reference returns `wanted` for the arguments of the case, with the memory that they share."""
        again = expected.expected_results(self._op, case.plain)
        if again.refusal:
            return False
        return expected.Expected(own=wanted.own, precise=wanted.own).difference(again.own) is None

    def _refused_on_the_cpu(self, fresh: Callable[[], dict[str, Any]], limit_s: float) -> Expected | None:
        """The reference's rejection on the CPU; None if it accepts the call there, or if that is unknown."""
        on_cpu = functools.partial(pytree.tree_map_only, Tensor, Tensor.cpu)
        found = expected.expected_results(self._op, lambda: on_cpu(fresh()), limit_s)
        return found if found.refusal and not found.unknown else None

    def _wanted(self, case: Case) -> Expected:
        if case.name not in self._expected:
            # If only the search makes arguments share memory, the expected results and their rounding are those of
            # separate arguments: draws would move a tensor that is passed twice as one, which hides cancellation.
            apart = case.family in (Family.SHARED, Family.PAIR)
            fresh = functools.partial(case.plain, apart=apart)
            limit_s = LIMIT_S if case.claimed else _VARIATION_LIMIT_S
            refused = self._refused_on_the_cpu(fresh, limit_s) if _may_end_the_gpu(case) else None
            wanted = refused or expected.expected_results(self._op, fresh, limit_s)
            if apart and writes_to_shared_memory(self._op, case.arguments) and not self._agrees(case, wanted):
                wanted = expected.Expected(refusal="the reference overwrites memory that it still reads", unknown=True)
            self._expected[case.name] = wanted
            if len(self._expected) > _MOST_KEPT:
                self._expected.popitem(last=False)
        return self._expected[case.name]


def _may_end_the_gpu(case: Case) -> bool:
    """Whether the arguments are on a GPU and may contain an invalid index, for which PyTorch raises only on the CPU.

    On a GPU, PyTorch's kernels fail an assertion, after which this process cannot use the GPU.
    """
    given = derive.tensors(case.arguments)
    has_integers = any(not derive.has_gradient(one) and one.dtype != torch.bool for one in given)
    return not case.claimed and has_integers and all(one.is_cuda and one.nbytes <= LARGE_BYTES for one in given)


def _without_infinities(tensor: Tensor) -> Tensor:
    return torch.where(tensor.isinf(), tensor.sgn().nan_to_num(1.0), tensor) if derive.has_gradient(tensor) else tensor


def _without_numbers(tensor: Tensor) -> Tensor:
    # Memory that is never accessed costs nothing.
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
