"""Finds what operators call of Python, which a program without Python does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opwright.builder.symbols import is_pythons, python_calls
from opwright.errors import BuildError
from opwright.toolchain.compiler import find_cxx
from opwright.toolchain.flags import linked_without_module
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# What the linker prints: a.cpp.o: in function `f(at::Tensor)':
#                         a.cpp:(.text._Z1f+0x1): undefined reference to `PyList_New'
_FUNCTION = re.compile(r"^(?:\S*ld(?:\.\w+)?: )?(\S+?): in function `(.*)':$")
_CALL = re.compile(r"undefined reference to `(\w+)'")
_MOST_CALLS = 5


def check_without_python(library: Path, objects: Sequence[Path]) -> None:
    """Check that a program without Python can link `library`.

    Args:
        library: the shared object.
        objects: what it was linked from.

    Raises:
        BuildError: it calls Python; the message names the functions that do.
        LoadError: a file cannot be read.
    """
    if not (symbols := python_calls(library)):
        return
    calls = _calls(objects)
    listed = "".join(f"\n  {place}: {function} calls {symbol}" for place, function, symbol in calls[:_MOST_CALLS])
    more = f"\n  and {len(calls) - _MOST_CALLS} more" if len(calls) > _MOST_CALLS else ""
    msg = (
        f"{library.name} calls Python ({', '.join(symbols[:3])}{', ...' if len(symbols) > 3 else ''}), and a program "
        f"without Python has neither these functions nor libtorch_python:{listed}{more}\nMove what is bound for Python "
        "into a source of its own, and leave that one out here; operators take tensors, not py::object"
    )
    raise BuildError(msg)


def _calls(objects: Iterable[Path]) -> list[tuple[str, str, str]]:
    """For each call of Python in what the linker keeps: the object, the function, and what it calls."""
    # Nothing but the objects: the linker names every undefined reference, and where it is.
    flags = [*linked_without_module(), "-Wl,--no-undefined", "-o", "/dev/null"]
    command: list[str | Path] = [*find_cxx().command, "-shared", *objects, *flags]
    calls: dict[tuple[str, str, str], None] = {}
    place = function = ""
    for line in run(command, check=False).output.splitlines():
        if found := _FUNCTION.match(line):
            place, function = found[1].rpartition("/")[2], found[2]
        elif (call := _CALL.search(line)) and is_pythons(call[1]):
            calls.setdefault((place, function, call[1]))
    return list(calls)
