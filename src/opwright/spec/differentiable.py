"""Checks which arguments of an operator are declared differentiable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence


def ordered(qualified_name: str, declared: Sequence[str], tensors: Sequence[str]) -> tuple[str, ...]:
    """The `declared` arguments in the order of the schema.

    Args:
        qualified_name: the name of the operator.
        declared: the names that its author declares.
        tensors: the names of its tensor arguments, in the order of the schema.

    Raises:
        SpecError: a declared name is not a tensor argument.
    """
    for name in declared:
        if name not in tensors:
            msg = (
                f"differentiable={name!r} of {qualified_name} is not a tensor argument: expected some of "
                f"{', '.join(tensors) or 'none'}"
            )
            raise SpecError(msg)
    return tuple(name for name in tensors if name in declared)


def merged(qualified_name: str, declared: tuple[str, ...] | None, further: Sequence[str]) -> tuple[str, ...]:
    """The declaration `further` of an operator's backward, which must agree with an earlier one.

    Raises:
        SpecError: it is a single string, or differs from the one passed to `Library.op`.
    """
    if isinstance(further, str):
        msg = f"differentiable={further!r} of {qualified_name} is one string; write a tuple: ({further!r},)"
        raise SpecError(msg)
    if declared is not None and set(declared) != set(further):
        msg = (
            f"{qualified_name} is declared with differentiable={declared!r}, its backward with "
            f"differentiable={tuple(further)!r}: declare it only once, or identically in both"
        )
        raise SpecError(msg)
    return tuple(further)
