"""Detects functions that the bench relies on and that a library has replaced."""

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

# The owners of functions that may not be replaced. PyTorch itself replaces some of its own, such as `torch.manual_seed`
# at the first `torch.compile`, so only the functions that the bench calls are listed for PyTorch's modules.
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
        (
            *("Tensor", "compile", "empty", "equal", "isclose", "mm", "no_grad"),
            *("rand", "randint", "randn", "set_grad_enabled"),
        ),
    ),
    "torch.autograd": (torch.autograd, ("grad",)),
    "torch.cuda": (torch.cuda, ("Event", "current_stream", "get_device_properties", "synchronize")),
    "torch.func": (torch.func, ("vjp",)),
}


# The locations of Python's and PyTorch's functions; those that Python generates for a class have no file.
_LOCATIONS = (sysconfig.get_path("stdlib"), str(Path(torch.__file__).parent), "<string>", "<frozen")


def check_replaced(library: str) -> None:
    """Check that no function that the bench relies on was replaced.

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
            found = _stored(holder, name)
            if callable(found):
                yield f"{owner}.{name}", found
    for owner, (module, names) in _LISTED.items():
        for name in names:
            yield f"{owner}.{name}", getattr(module, name)


def _stored(holder: object, name: str) -> object:
    """The attribute as it is stored: `getattr` on a class would bind it, which makes a new object each time."""
    places = holder.__mro__ if isinstance(holder, type) else (holder,)
    return next((vars(place)[name] for place in places if name in vars(place)), None)


def _is_foreign(function: object) -> bool:
    """Whether it is a Python function that belongs neither to Python nor to PyTorch."""
    if isinstance(function, (classmethod, staticmethod)):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        return False
    return not function.__code__.co_filename.startswith(_LOCATIONS)


# The functions before a library is opened, unless a program opened the library before it imported this module.
_ORIGINALS = dict(_functions())
