"""Suggests what to do about a header that a compiler does not find."""

from __future__ import annotations

import re
import sys

from opwright.toolchain.packages import packages_with

# The messages of g++, which nvcc also prints, and of clang++.
_MISSING = re.compile(
    r"^\S.*:\d+:\d+: fatal error: (?:(?P<gcc>[^\n']+): No such file or directory|'(?P<clang>.+)' file not found)$",
    flags=re.MULTILINE,
)
_MOST_PACKAGES = 3


def missing_header(error: str) -> str:
    """A line with what to do about the missing header that `error` reports; empty if it reports another error."""
    found = _MISSING.search(error)
    if found is None:
        return ""
    header = found["gcc"] or found["clang"]
    if header == "Python.h":
        release = f"{sys.version_info.major}.{sys.version_info.minor}"
        return (
            f"\n  fix: install the headers of Python {release}: on Debian and Ubuntu, the package python{release}-dev"
        )
    if re.match(r"(?:ATen|c10|torch)/", header):
        return "\n  fix: the installed PyTorch does not contain it: include a header that this release of PyTorch has"
    folder = "add the folder that contains it to include_dirs= (extra_include_paths= in opwright.load)"
    if f'"{header}"' in error:
        return f"\n  fix: correct its path, or {folder}"
    if names := packages_with(header)[:_MOST_PACKAGES]:
        each = " or ".join(f'packages=["{name}"]' for name in names)
        flags = f"`pkg-config --cflags --libs {names[0]}`"
        return f"\n  fix: an installed package contains it: add {each}, or the flags that {flags} prints"
    return (
        f"\n  fix: {folder}, or install the library that it belongs to: on Debian and Ubuntu, "
        f"`apt-file search /{header}` prints the package"
    )
