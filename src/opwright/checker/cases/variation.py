"""A change to a call."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from opwright.checker.cases.case import Case, Family

Arguments = dict[str, Any]
Change = Callable[[Arguments], Arguments]


@dataclass(frozen=True)
class Variation:
    """One change to a call.

    Attributes:
        what: the change in words, such as `x transposed`.
        family: what it varies.
        change: returns the changed arguments, and leaves its input unchanged. Raises if it does not apply.
        argument: the argument that it varies, such as `x` or `xs[0]`; empty if it varies several.
        is_of_only_tensor: whether that argument is the only tensor of its kind, such as the only integer tensor.
    """

    what: str
    family: Family
    change: Change
    argument: str = ""
    is_of_only_tensor: bool = False

    def of(self, case: Case) -> Case:
        """`case` with this change."""
        return Case(f"{case.name}, {self.what}", self.family, self.change(case.arguments), argument=self.argument)


def replacing(what: str, family: Family, path: str, make: Callable[[Tensor], Tensor]) -> Variation:
    """A variation that replaces the tensor at `path` by the result of `make`."""
    return Variation(what, family, lambda given: replaced(given, path, make(tensor_at(given, path))), path)


def tensors(arguments: Arguments) -> list[tuple[str, Tensor]]:
    """The tensors of a call, each with its path, such as `x` or `xs[0]`."""
    found = []
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            found.append((name, value))
        elif isinstance(value, (list, tuple)):
            found += [(f"{name}[{at}]", one) for at, one in enumerate(value) if isinstance(one, Tensor)]
    return found


def is_integer(tensor: Tensor) -> bool:
    """Whether a tensor contains integers."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def tensor_at(arguments: Arguments, path: str) -> Tensor:
    """The tensor at a path."""
    return dict(tensors(arguments))[path]


def replaced(arguments: Arguments, path: str, value: Any) -> Arguments:
    """`arguments` with the value at a path replaced."""
    name, _, place = path.partition("[")
    if place:
        listed = list(arguments[name])
        listed[int(place.rstrip("]"))] = value
        value = listed
    return {**arguments, name: value}


def choice(seed: int) -> random.Random:
    """A random generator for choosing variations, the same ones for the same seed."""
    return random.Random(seed)  # noqa: S311  variations, not secrets


def generator(seed: int, *words: str) -> torch.Generator:
    """A random generator seeded with `seed` and `words`."""
    return torch.Generator().manual_seed(zlib.crc32("\n".join(words).encode(), seed & 0xFFFFFFFF))
