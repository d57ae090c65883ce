"""Varies sizes and non-tensor arguments of a call together, at random."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.options import options
from opwright.checker.cases.resized import with_sizes
from opwright.checker.cases.variation import choice
from opwright.spec import derive

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from opwright.spec import Op

# The largest size or integer, and the largest integer in a list. Small ones are as frequent as large ones.
_LARGEST = 256
_LARGEST_IN_LIST = 16
_MOST_ELEMENTS = 2**17
_TRIALS = 4


def combined(op: Op, samples: Sequence[Case], count: int, seed: int) -> Iterator[Case]:
    """Yield at most `count` calls that differ from the samples in several sizes and options.

    Some faults depend on two numbers, such as a size and the integer that divides it. Dimensions that are equal in the
    sample stay equal, because the reference would reject most other calls.
    """
    choose = choice(seed)
    seen: set[str] = set()
    for _ in range(count * _TRIALS):
        if len(seen) == count:
            return
        sample = choose.choice(samples)
        sizes, values = _other_sizes(sample, choose), dict(_other_values(op, sample, choose))
        words = [*(f"dimensions of {old} as {new}" for old, new in sizes.items()), *map(_assigned, values.items())]
        name = f"{sample.name}, at random: {', '.join(words)}"
        if words and name not in seen:
            seen.add(name)
            yield Case(name, Family.PAIR, with_sizes({**sample.arguments, **values}, _by_place(sample, sizes)))


def _other_sizes(sample: Case, choose: random.Random) -> dict[int, int]:
    """Choose new sizes for some of the sizes in the sample."""
    given = derive.tensors(sample.arguments)
    elements = max((tensor.numel() for tensor in given), default=0)
    sizes: dict[int, int] = {}
    for old in sorted({size for tensor in given for size in tensor.shape if size > 0}):
        new = _integer(choose, _LARGEST)
        if choose.random() < 2 / 3 and new != old and elements * new // old <= _MOST_ELEMENTS:
            sizes[old] = new
            elements = elements * new // old
    return sizes


def _by_place(sample: Case, sizes: dict[int, int]) -> dict[tuple[int, int], int]:
    return {
        (at, dim): sizes[old]
        for at, tensor in enumerate(derive.tensors(sample.arguments))
        for dim, old in enumerate(tensor.shape)
        if old in sizes
    }


def _other_values(op: Op, sample: Case, choose: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield other values for some of the non-tensor arguments."""
    others: dict[str, list[Any]] = {}
    for variation in options(op, sample):
        value = variation.change(sample.arguments)[variation.argument]
        if not derive.tensors(value) and not derive.tensors(sample.arguments[variation.argument]):
            others.setdefault(variation.argument, []).append(value)
    for name, values in others.items():
        if choose.random() < 1 / 3:
            continue
        value = sample.arguments[name]
        drawn = choose.choice(values)
        if type(value) is int and choose.random() < 3 / 4:
            drawn = _integer(choose, _LARGEST)
        elif isinstance(value, (list, tuple)) and all(type(one) is int for one in value) and choose.random() < 3 / 4:
            drawn = [_integer(choose, _LARGEST_IN_LIST) for _ in value]
        yield name, drawn


def _assigned(pair: tuple[str, Any]) -> str:
    return f"{pair[0]}={pair[1]!r}"


def _integer(choose: random.Random, largest: int) -> int:
    return round(math.exp(choose.uniform(0.0, math.log(largest))))
