"""Finds functions that the bench relies on and that a library replaced."""

from __future__ import annotations

import gc
import statistics
import sysconfig
import time
import types
from pathlib import Path
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


# Where functions of Python and of PyTorch are; those that Python generates for a class have no file.
_HOMES = (sysconfig.get_path("stdlib"), str(Path(torch.__file__).parent), "<string>", "<frozen")


def check_replaced(library: str) -> None:
    """Check that nobody replaced a function that the bench relies on.

    Args:
        library: the folder of the library, for the message.

    Raises:
        SpecError: one was replaced.
    """
    now = dict(_functions())
    replaced = [name for name, function in _ORIGINALS.items() if now.get(name) is not function or _is_foreign(function)]
    if replaced:
        msg = (
            f"{', '.join(replaced[:3])}{' and more' * (len(replaced) > 3)} was replaced, by {library} or what it "
            "imports; the bench relies on it, so times and comparisons would mean nothing: remove what assigns to it"
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


def _is_foreign(function: object) -> bool:
    """Whether it is a Python function that neither Python nor PyTorch has."""
    if isinstance(function, (classmethod, staticmethod)):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        return False
    return not function.__code__.co_filename.startswith(_HOMES)


# As they are before a library is opened, unless a program opened it before it imported this module.
_ORIGINALS = dict(_functions())
