"""Counts the floating-point operations of an operator: those of the matrix products in its reference."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch.utils.flop_counter import FlopCounterMode

from opwright.bencher.floor import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.bencher.result import Direction
    from opwright.bencher.subject import Subject


def flops_of(subject: Subject, direction: Direction) -> int:
    """The floating-point operations of the reference's matrix products, convolutions and attention in a direction.

    PyTorch's `FlopCounterMode` counts them: two per multiply-add. It does not count elementwise operations and kernels
    that it does not support.
    """
    found = 0
    reference, given = subject.op.reference, subject.gradients
    if "forward" in PARTS[direction]:
        with torch.no_grad():
            found += _counted(functools.partial(subject.call, reference, subject.fresh()))
    if "backward" in PARTS[direction]:
        positional, keywords = subject.op.spread(given.arguments)
        with torch.enable_grad():
            results = given.select(reference(*positional, **keywords))
            found += _counted(functools.partial(given.of, results))
    return found


def _counted(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())
