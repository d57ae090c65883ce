"""Erases the C++ signatures of replaced operators from the dispatcher."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.compile import build_plan
from opwright.builder.plan import Plan
from opwright.errors import BuildError, ToolchainError
from opwright.report.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE = Path(__file__).with_suffix(".cpp")


@functools.cache
def prepare() -> ctypes.CDLL | None:
    """Build the library for `forget_signatures` (a few seconds, once per PyTorch), unless it is in the cache.

    Returns:
        The library; None if it does not build.
    """
    with contextlib.suppress(ToolchainError, BuildError):
        plan = Plan(name="opwright_signatures", sources=(SOURCE,), abi="full")
        return ctypes.CDLL(str(build_plan(plan, progress=Progress(plan.name)).path))
    return None


def forget_signatures(operators: Iterable[str]) -> None:
    """Erase the C++ signatures of operators whose native kernels were unregistered.

    Otherwise kernels with other signatures could not be registered for them.
    """
    library = prepare()
    if library is not None:
        for operator in operators:
            name, _, overload = operator.partition(".")
            library.opwright_forget_signature(name.encode(), overload.encode())
