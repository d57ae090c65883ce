"""Finds calls of Python's functions in operators, which a program without Python cannot link."""

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
        BuildError: it calls Python; the message lists the callers.
        LoadError: a file cannot be read.
    """
    if not (symbols := python_calls(library)):
        return
    calls = _calls(objects)
    listed = "".join(f"\n  {place}: {function} calls {symbol}" for place, function, symbol in calls[:_MOST_CALLS])
    more = f"\n  and {len(calls) - _MOST_CALLS} more" if len(calls) > _MOST_CALLS else ""
    msg = (
        f"{library.name} calls Python ({', '.join(symbols[:3])}{', ...' if len(symbols) > 3 else ''}), but a program "
        f"without Python has neither these functions nor libtorch_python:{listed}{more}\nMove the Python bindings "
        "to a separate source, and do not list it here; operators accept tensors, not py::object"
    )
    raise BuildError(msg)


def _calls(objects: Iterable[Path]) -> list[tuple[str, str, str]]:
    """For each call of Python in functions that the linker keeps: the object, the function, and the callee."""
    # Link only the objects, so that the linker reports every undefined reference, and where it is.
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
