"""Compares the results of one call at different times and in different threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case
from opwright.spec import derive
from opwright.spec.difference import Goal, described, differs

if TYPE_CHECKING:
    from opwright.checker.subject import Subject


def changed_answer(subject: Subject, case: Case, results: list[Any], before: list[Any]) -> str | None:
    """Return how `results` of `case` differ from those of an earlier call; None if both are the same or correct.

    The same call may round differently: with another number of threads, which a BLAS may choose in each thread, or with
    atomic additions in another order. So bits are not compared: the oracle determines the tolerance.
    """
    found = difference(results, before)
    if found is None or subject.judge(case, results) is not None:
        return found
    # A Python-only operator is its own reference: if that changes, it does not define what is correct.
    return None if subject.is_steady(case) else found


def difference(results: list[Any], before: list[Any]) -> str | None:
    """Return how `results` differ from earlier ones by more than rounding; None if they do not."""
    for result, earlier in zip(pytree.tree_leaves(results), pytree.tree_leaves(before), strict=True):
        if earlier is None and result is not None:
            return f"{described(result)} instead of None"
        found = differs(result, Goal(earlier, earlier))
        if found is not None:
            return f"{found.got} instead of {found.expected}"
    return None


def same_numbers(result: Any, earlier: Any) -> bool:
    """Return whether a result still contains the same values as before."""
    if not isinstance(result, Tensor):
        return bool(result == earlier)
    if result.is_meta:
        return True  # it has none
    if torch.equal(result, earlier):
        return True  # which is never true for NaN
    return bool(((result == earlier) | (result.isnan() & earlier.isnan())).all())


def _shifted(arguments: dict[str, Any], by: int) -> dict[str, Any]:
    """Return `arguments` with their floating-point values rotated."""

    def shift(tensor: Tensor) -> Tensor:
        return tensor.flatten().roll(by).view(tensor.shape) if tensor.is_floating_point() else tensor

    made: dict[str, Any] = derive.with_tensors(arguments, shift)
    return made


def shifted_case(subject: Subject, case: Case, by: int) -> Case:
    """Return `case` with its floating-point values rotated, or unchanged if they would be outside the domain."""
    other = Case(f"{case.name}, rotated by {by}", case.family, _shifted(case.fresh(), by))
    return Case(other.name, case.family, case.fresh()) if subject.is_outside(other) else other


def is_right_alone(subject: Subject, case: Case) -> bool:
    """Return whether the plain call is right; otherwise a wrong result proves nothing about other ways to call it."""
    try:
        return subject.judge(case, subject.call(case.fresh())) is None
    except Exception:
        return False


def copies(results: list[Any]) -> list[Any]:
    """Return copies of the results of a call."""
    made: list[Any] = derive.with_tensors(results, Tensor.clone)
    return made
