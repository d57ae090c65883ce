"""Turns the mangled names of C++ functions and kernels into readable ones."""

from __future__ import annotations

import ctypes
import re

_NAME = re.compile(r"\b_Z\w+")
# The namespace that nvcc generates for symbols that are local to a file.
_OF_FILE = re.compile(r"\b_INTERNAL_[0-9a-f]{8}_\w+::")


def demangled(text: str) -> str:
    """`text` with each mangled name demangled; invalid names are left unchanged."""
    return _NAME.sub(lambda found: _demangled(found[0]), text)


def _demangled(name: str) -> str:
    demangle = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        return _OF_FILE.sub("", ctypes.string_at(found).decode(errors="replace"))
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(found))
