"""The table of the eleven runtimes, with their static properties. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RuntimeRow:
    """The static properties of a runtime.

    Attributes:
        name: its name in reports; its module in `checker/runtimes/` has underscores in place of hyphens.
        lane: one process runs the runtimes of a lane one after the other; lanes run in parallel.
        step_limit_s: the time limit of one step, in seconds as `HangWatch` counts them; a longer step is a hang.
        quick: whether it compiles nothing, and so finishes in seconds.
        needs_fake: whether it calls the fake kernel.
        sanitizable: whether it runs everything in the instrumented process itself.
    """

    name: str
    lane: str
    step_limit_s: float
    quick: bool = False
    needs_fake: bool = False
    sanitizable: bool = False


RUNTIMES = (
    RuntimeRow("eager", "in Python", 300, quick=True, sanitizable=True),
    RuntimeRow("autograd", "in Python", 300, quick=True, sanitizable=True),
    RuntimeRow("compile", "compiled", 900, quick=True, needs_fake=True),
    RuntimeRow("vmap", "in Python", 300, quick=True, sanitizable=True),
    RuntimeRow("trace", "in Python", 300, quick=True, sanitizable=True),
    RuntimeRow("script", "in Python", 300, quick=True, sanitizable=True),
    RuntimeRow("export", "ahead of time", 900, needs_fake=True),
    RuntimeRow("aoti", "ahead of time", 900, needs_fake=True),
    RuntimeRow("host-linked", "ahead of time", 900),
    RuntimeRow("host-script", "ahead of time", 900),
    RuntimeRow("host-aoti", "ahead of time", 900, needs_fake=True),
)
RUNTIME_NAMES = tuple(row.name for row in RUNTIMES)
# The slowest first, because it determines when the check finishes.
LANES = ("ahead of time", "compiled", "in Python")


def runtime_row(name: str) -> RuntimeRow:
    """The row of the runtime with that name.

    Raises:
        KeyError: no runtime has that name.
    """
    return _BY_NAME[name]


_BY_NAME = {row.name: row for row in RUNTIMES}
