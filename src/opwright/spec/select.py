"""Picks some of what there is by the names that a user gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opwright.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence


Name = TypeVar("Name", bound=str)


def chosen(asked: Sequence[str], known: Sequence[Name], what: str, prefix: str = "") -> list[Name]:
    """Those of `known` that are asked for, in their order; all where none is.

    Args:
        asked: the names that a user gives, with or without `prefix`.
        known: the names that there are.
        what: what they name, in a word.
        prefix: what may stand before a name.

    Raises:
        SpecError: a name is unknown.
    """
    for name in asked:
        if name.removeprefix(prefix) not in known:
            msg = f"there is no {what} {name!r}: expected some of {', '.join(known)}"
            raise SpecError(msg)
    wanted = {name.removeprefix(prefix) for name in asked}
    return [name for name in known if name in wanted or not wanted]
