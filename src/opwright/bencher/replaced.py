"""Finds functions that the bench relies on and that a library replaced."""

from __future__ import annotations

import gc
import statistics
import time
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opwright.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Whose functions may not be replaced. PyTorch itself replaces some of its own, such as `torch.manual_seed` at the first
# `torch.compile`, so of its modules only what the bench calls is listed.
_WHOLE = {
    "time": time,
    "gc": gc,
    "statistics": statistics,
    "torch.Tensor": Tensor,
    "torch.cuda.Event": torch.cuda.Event,
}
_LISTED: dict[str, tuple[object, tuple[str, ...]]] = {
    "torch": (
        torch,
        ("Tensor", "compile", "empty", "equal", "isclose", "no_grad", "rand", "randint", "randn", "set_grad_enabled"),
    ),
    "torch.autograd": (torch.autograd, ("grad",)),
    "torch.cuda": (torch.cuda, ("Event", "synchronize")),
    "torch.func": (torch.func, ("vjp",)),
}


class Originals:
    """The functions that the bench relies on, as they are before a library is opened."""

    def __init__(self) -> None:
        self._functions = dict(_functions())

    def check(self, library: str) -> None:
        """Check that none was replaced.

        Args:
            library: the folder of the library, for the message.

        Raises:
            SpecError: one was replaced.
        """
        now = dict(_functions())
        replaced = [name for name, function in self._functions.items() if now.get(name) is not function]
        if replaced:
            msg = (
                f"{library} replaced {', '.join(replaced[:3])}{' and more' * (len(replaced) > 3)}, which the bench "
                "relies on: times and comparisons would mean nothing. Remove what assigns to it in op.py or in what it "
                "imports or loads"
            )
            raise SpecError(msg)


def _functions() -> Iterator[tuple[str, object]]:
    for owner, holder in _WHOLE.items():
        for name in dir(holder):
            found = _found(holder, name)
            if callable(found):
                yield f"{owner}.{name}", found
    for owner, (module, names) in _LISTED.items():
        for name in names:
            yield f"{owner}.{name}", getattr(module, name)


def _found(holder: object, name: str) -> object:
    """The attribute as it is kept: that of a class is not bound to it, which would make a new object each time."""
    places = holder.__mro__ if isinstance(holder, type) else (holder,)
    return next((vars(place)[name] for place in places if name in vars(place)), None)
