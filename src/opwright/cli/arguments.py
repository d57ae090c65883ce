"""Arguments that several verbs share: a library, a bundle, operators and devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opwright.toolchain.devices import DEVICES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def some_of(known: Sequence[str]) -> Callable[[list[str] | None], list[str] | None]:
    """A callback that refuses names which are not in `known`."""

    def checked(given: list[str] | None) -> list[str] | None:
        for name in given or ():
            if name not in known:
                msg = f"{name!r} is unknown: expected {', '.join(known[:-1])} or {known[-1]}"
                raise typer.BadParameter(msg)
        return given

    return checked


def one_of(known: Sequence[str]) -> Callable[[str], str]:
    """The same for an option that takes a single name."""
    some = some_of(known)

    def checked(given: str) -> str:
        some([given])
        return given

    return checked


LibraryArgument = Annotated[Path, typer.Argument(metavar="PATH", help="Folder with an op.py, or the file itself.")]
BundleArgument = Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder that `opwright ship` wrote.")]
OpsOption = Annotated[
    list[str] | None, typer.Option("--op", metavar="NAME", help="Only this operator; repeat for more.")
]
DevicesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--device", metavar="NAME", help=f"Only this device: {' or '.join(DEVICES)}.", callback=some_of(DEVICES)
    ),
]
