"""The domain of an operator: the calls for which it is defined, as stated by its author."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opwright.spec.schema import require_same_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Domain:
    """The calls for which an operator is defined.

    Attributes:
        predicate: accepts the operator's arguments, and returns whether the call is inside.
    """

    predicate: Callable[..., Any]

    def why_outside(self, positional: Sequence[Any], keywords: Mapping[str, Any]) -> str:
        """Why a call is outside; empty if it is inside. The predicate may write to the arguments."""
        try:
            inside = bool(self.predicate(*positional, **keywords))
        except Exception as error:  # noqa: BLE001  the author's code, which may raise for a call outside the domain
            return f"its @domain function raises {type(error).__name__}: {error}"
        return "" if inside else "its @domain function returns False"


def make_domain(qualified_name: str, reference: Callable[..., Any], predicate: Callable[..., Any]) -> Domain:
    """The domain that `Op.domain` decorates.

    Raises:
        SpecError: the parameters of `predicate` differ from the operator's.
    """
    require_same_parameters(f"the domain of {qualified_name}", predicate, reference)
    return Domain(predicate)
