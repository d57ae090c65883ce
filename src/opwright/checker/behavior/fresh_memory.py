"""Makes operator libraries fill the tensors that `opwright/empty.h` allocates, as PyTorch fills its own."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import TYPE_CHECKING, Any

from opwright.checker.shared_objects import open_shared_objects, opened_and_closed

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def fill_new_tensors(*, on: bool) -> Iterator[None]:
    """Fill new tensors as PyTorch's settings specify in this context, or leave them uninitialised.

    This affects every library that is loaded in this process and includes the header.
    """
    switches = _switches(opened_and_closed())
    before = [switch(on) for switch in switches]
    try:
        yield
    finally:
        for switch, was_on in zip(switches, before, strict=True):
            switch(was_on)


@functools.lru_cache(maxsize=1)
def _switches(_counts: tuple[int, int]) -> list[Any]:
    """The switch that each such library exports; looked up again after a library was opened or closed."""
    found = {}
    for opened in open_shared_objects():
        with contextlib.suppress(AttributeError):
            switch = opened.opwright_fill_new_tensors
            switch.argtypes, switch.restype = (ctypes.c_bool,), ctypes.c_bool
            # A library that links to another one also exports the function of that one.
            found[ctypes.cast(switch, ctypes.c_void_p).value] = switch
    return list(found.values())
