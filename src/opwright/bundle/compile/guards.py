"""Conditions on sizes that an export assumes, and that the compiled code does not check."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any

from opwright.bundle.format.manifest import Dimension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.export import ExportedProgram

    from opwright.bundle.source.samples import Inputs
    from opwright.bundle.source.shape import Size

_SIZE = re.compile(r"L\['inputs'\]\[(\d+)\]\.size\(\)\[(\d+)\]")
# Two sizes that must be equal are listed in the manifest, and the host checks them.
_EQUAL = re.compile(rf"{_SIZE.pattern} == {_SIZE.pattern}")
# The names in its conditions.
_KNOWN = {"__builtins__": {}, "math": math, "max": max, "min": min, "abs": abs, "int": int, "float": float}
# The export never assumes anything of the sizes 0 and 1: samples are run at these.
_LEAST = 2
# The most combinations of sizes that are tried of one condition.
_MOST = 2**16


def broken_guard(program: ExportedProgram, inputs: Inputs) -> str:
    """A condition that does not hold for all claimed sizes, and where it fails; empty if all hold."""
    for code in getattr(program, "_guards_code", ()):  # a release without this attribute lists none
        if not _EQUAL.fullmatch(code):
            places = sorted({(int(number), int(at)) for number, at in _SIZE.findall(code)})
            dims = [inputs.shapes[number].dims[at] for number, at in places]
            compiled = _compiled(_SIZE.sub(lambda found: f"size_{found[1]}_{found[2]}", code))
            names = [f"size_{number}_{at}" for number, at in places]
            for sizes in _combinations(dims):
                if compiled is not None and not _holds(compiled, dict(zip(names, sizes, strict=True))):
                    words = _SIZE.sub(lambda found: f"{inputs.names[int(found[1])]}.shape[{found[2]}]", code)
                    return f"{words}, and that is false for {' and '.join(map(str, sizes))}"
    return ""


def _compiled(code: str) -> Any:
    try:
        return compile(code, "<guard>", "eval")
    except SyntaxError:
        return None


def _holds(compiled: Any, sizes: dict[str, int]) -> bool:
    try:
        return bool(eval(compiled, _KNOWN, sizes))  # noqa: S307  torch wrote it of this very model
    except (NameError, AttributeError, ArithmeticError, TypeError):
        return True  # it has a name that is not known here


def _combinations(dims: Sequence[Size]) -> itertools.product[tuple[int, ...]]:
    """All combinations of sizes if there are few; otherwise the ends, their neighbours, and steps between them."""
    share = int(_MOST ** (1 / max(len(dims), 1)))
    return itertools.product(*(_sizes(dim, share) for dim in dims))


def _sizes(dim: Size, most: int) -> list[int]:
    if not isinstance(dim, Dimension):
        return [dim]
    least = max(dim.min, _LEAST)
    last = dim.max if dim.max is not None else least + most
    if last - least < most:
        return list(range(least, last + 1))
    return sorted({least, least + 1, last - 1, last, *range(least, last, (last - least) // (most - 4) + 1)})
