"""The shared objects that this process has open."""

from __future__ import annotations

import contextlib
import ctypes
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
        ("opened", ctypes.c_ulonglong),  # the number opened so far
        ("closed", ctypes.c_ulonglong),
    )


_Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_SharedObject), ctypes.c_size_t, ctypes.c_void_p)
_visit_shared_objects = ctypes.CDLL(None).dl_iterate_phdr


def opened_and_closed() -> tuple[int, int]:
    """The numbers of shared objects that this process has opened and closed so far."""
    counts = (0, 0)

    def first(shared_object: Any, _size: int, _more: object) -> int:
        nonlocal counts
        counts = shared_object.contents.opened, shared_object.contents.closed
        return 1

    _visit_shared_objects(_Visit(first), None)
    return counts


def open_shared_objects(part_of_path: str = "") -> Iterator[ctypes.CDLL]:
    """The shared objects that are open in this process and have `part_of_path` in their paths."""
    paths = []

    def each(shared_object: Any, _size: int, _more: object) -> int:
        paths.append(shared_object.contents.path)
        return 0

    _visit_shared_objects(_Visit(each), None)
    for path in filter(None, paths):
        # Objects that the kernel maps into each process, and objects closed in the meantime, cannot be opened.
        with contextlib.suppress(OSError):
            if part_of_path in os.fsdecode(path):
                yield ctypes.CDLL(os.fsdecode(path), mode=os.RTLD_NOLOAD)
