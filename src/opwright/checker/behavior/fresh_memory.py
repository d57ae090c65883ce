"""Has operator libraries fill the tensors that `opwright/empty.h` allocates, as PyTorch fills its own."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class _SharedObject(ctypes.Structure):
    """The C library's dl_phdr_info."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("path", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("opened", ctypes.c_ulonglong),  # how many the process has opened until now
        ("closed", ctypes.c_ulonglong),
    )


_Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_SharedObject), ctypes.c_size_t, ctypes.c_void_p)
_visit_shared_objects = ctypes.CDLL(None).dl_iterate_phdr


@contextlib.contextmanager
def fill_new_tensors(*, on: bool) -> Iterator[None]:
    """Fill them as PyTorch's settings say while this is active, or leave them as they are.

    It reaches every library that is open in this process and includes the header.
    """
    counts = (0, 0)

    def first(shared_object: Any, _size: int, _more: object) -> int:
        nonlocal counts
        counts = shared_object.contents.opened, shared_object.contents.closed
        return 1

    _visit_shared_objects(_Visit(first), None)
    switches = _switches(counts)
    before = [switch(on) for switch in switches]
    try:
        yield
    finally:
        for switch, was_on in zip(switches, before, strict=True):
            switch(was_on)


@functools.lru_cache(maxsize=1)
def _switches(_counts: tuple[int, int]) -> list[Any]:
    """The function for this that each such library exports; found again after a library was opened or closed."""
    paths = []

    def each(shared_object: Any, _size: int, _more: object) -> int:
        paths.append(shared_object.contents.path)
        return 0

    _visit_shared_objects(_Visit(each), None)
    found = {}
    for path in filter(None, paths):
        # What the kernel maps into each process, and what was closed meanwhile, cannot be opened.
        with contextlib.suppress(OSError, AttributeError):
            switch = ctypes.CDLL(os.fsdecode(path), mode=os.RTLD_NOLOAD).opwright_fill_new_tensors
            switch.argtypes, switch.restype = (ctypes.c_bool,), ctypes.c_bool
            # A library that links another one has its function as well.
            found[ctypes.cast(switch, ctypes.c_void_p).value] = switch
    return list(found.values())
