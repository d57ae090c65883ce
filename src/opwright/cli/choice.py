"""Options that take some of the names that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def some_of(known: Sequence[str]) -> Callable[[list[str] | None], list[str] | None]:
    """What an option does with the names that it is given: they have to be known."""

    def checked(given: list[str] | None) -> list[str] | None:
        for name in given or ():
            if name not in known:
                msg = f"{name!r} is unknown: expected {', '.join(known[:-1])} or {known[-1]}"
                raise typer.BadParameter(msg)
        return given

    return checked
