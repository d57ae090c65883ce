"""Detects functions that the benchmark relies on and that a library has replaced."""

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

# The owners of functions that must not be replaced. PyTorch replaces some of its own functions, such as
# `torch.manual_seed` at the first `torch.compile`, so for PyTorch's modules only the functions that the benchmark calls
# are listed.
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


# The locations of Python's and PyTorch's functions; functions that Python generates for a class have no file.
_LOCATIONS = (sysconfig.get_path("stdlib"), str(Path(torch.__file__).parent), "<string>", "<frozen")


def check_replaced(library: str) -> None:
    """Check that no function that the benchmark relies on was replaced.

    Args:
        library: the folder of the library, for the message.

    Raises:
        SpecError: a function was replaced.
    """
    now = dict(_functions())
    replaced = [name for name, function in _ORIGINALS.items() if now.get(name) is not function or _is_foreign(function)]
    if replaced:
        msg = (
            f"{', '.join(replaced[:3])}{' and more' * (len(replaced) > 3)} was replaced, by {library} or a module that "
            "it imports; the benchmark relies on it, so times and comparisons would be meaningless: remove the "
            "assignment"
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
    """The attribute as it is stored: `getattr` on a class would bind it, which creates a new object each time."""
    places = holder.__mro__ if isinstance(holder, type) else (holder,)
    return next((vars(place)[name] for place in places if name in vars(place)), None)


def _is_foreign(function: object) -> bool:
    """Whether it is a Python function that belongs to neither Python nor PyTorch."""
    if isinstance(function, (classmethod, staticmethod)):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        return False
    return not function.__code__.co_filename.startswith(_LOCATIONS)


# The functions before a library is opened, unless a program opened the library before importing this module.
_ORIGINALS = dict(_functions())
