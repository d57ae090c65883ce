"""Selects the known names that a user requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opwright.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence


Name = TypeVar("Name", bound=str)


def select_names(requested: Sequence[str], known: Sequence[Name], what: str, prefix: str = "") -> list[Name]:
    """The requested names in the order of `known`; all of `known` if none is requested.

    Args:
        requested: the names that a user passed, with or without `prefix`.
        known: the valid names.
        what: a noun for the names in the error message, such as `operator`.
        prefix: an optional prefix of a requested name.

    Raises:
        SpecError: a name is unknown.
    """
    for name in requested:
        if name.removeprefix(prefix) not in known:
            msg = f"unknown {what} {name!r}: expected one of {', '.join(known)}"
            raise SpecError(msg)
    selected = {name.removeprefix(prefix) for name in requested}
    return [name for name in known if name in selected or not selected]
