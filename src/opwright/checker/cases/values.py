"""Varies the values in tensors: magnitudes, offsets, ties, zeros, special values, extreme integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opwright.checker.cases.case import Family
from opwright.checker.cases.variation import Arguments, Change, Variation, generator, is_integer, replaced, tensors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opwright.checker.cases.case import Case

# Returns other values for a contiguous copy of a tensor.
Content = Callable[[Tensor, torch.Generator], Tensor]

_SCALES = (1e-30, 1e-20, 1e-10, 1e-5, 1e-3, 1e3, 1e5, 1e10, 1e20, 1e30)
# Positions are tried in this many of the largest dimensions.
_MOST_SIZES = 3
# float16 represents all of these, and float32 the exponential of a sum of two.
_SMALLEST_POWER, _LARGEST_POWER = -12, 5
_OFFSETS = (1.0, -1.0, 1e2, 1e4, -1e4)
_SPECIAL = {"NaN": (float("nan"),), "infinities": (float("inf"), float("-inf"))}
_ROW_VALUES = {"NaN": float("nan"), "-inf": float("-inf"), "+inf": float("inf")}


def contents(case: Case, seed: int, numbers: Sequence[float] = (), *, each: bool = True) -> Iterator[Variation]:
    """Yield variations of the values in the tensors of `case`: in all tensors of a kind together, and in each alone.

    Args:
        case: the call to vary.
        seed: the seed of random values.
        numbers: further numbers to try in each tensor, at which an operator may behave differently.
        each: whether to also vary each tensor alone, if there are several of its kind.
    """
    limits = dict.fromkeys([*_limits(case), *numbers])
    for holds, table in _TABLES:
        paths = [path for path, tensor in tensors(case.arguments) if holds(tensor) and tensor.numel()]
        alone = paths if each or len(paths) == 1 else []
        for what, (family, content) in table.items():
            if len(paths) > 1:
                yield Variation(f"all tensors {what}", family, _changing(paths, content, seed, case.name, what))
            for path in alone:
                change = _changing([path], content, seed, case.name, what)
                yield Variation(f"{path} {what}", family, change, path, is_of_only_tensor=len(paths) == 1)
        for number in limits:
            if holds in _PLACED and _PLACED[holds].takes(number):
                what, placed = f"with the number {number:g}", _PLACED[holds]
                for path in alone:
                    change = _changing([path], placed.content(number), seed, case.name, what)
                    yield Variation(f"{path} {what}", placed.family, change, path)


def _limits(case: Case) -> list[int]:
    """The last position in each dimension, the next one, -1 and 0: a tensor may contain indices into another."""
    sizes = sorted({size for _, tensor in tensors(case.arguments) for size in tensor.shape if size > 1})
    return sorted({number for size in (0, *sizes[-_MOST_SIZES:]) for number in (size - 1, size)})


def _changing(paths: list[str], content: Content, seed: int, *words: str) -> Change:
    def change(given: Arguments) -> Arguments:
        changed = given
        for path, tensor in tensors(given):
            # A generator per tensor, so that special values are at different positions in each.
            if path in paths and tensor.numel() and not tensor.is_meta:
                dense = tensor.detach().clone(memory_format=torch.contiguous_format)
                made = content(dense, generator(seed, path, *words))
                # No to() with the same dtype, because it would normalize the bytes of booleans.
                changed = replaced(changed, path, made if made.dtype == tensor.dtype else made.to(tensor.dtype))
        return changed

    return change


def _is_floating(tensor: Tensor) -> bool:
    return tensor.is_floating_point()


def _is_complex(tensor: Tensor) -> bool:
    return tensor.is_complex()


def _is_boolean(tensor: Tensor) -> bool:
    return tensor.dtype == torch.bool


# -- floating-point numbers ---------------------------------------------------------------------------


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.float64)


def _scaled(factor: float) -> Content:
    return lambda x, _: (_wide(x) * factor).clamp(torch.finfo(x.dtype).min, torch.finfo(x.dtype).max)


def _moved(offset: float) -> Content:
    return lambda x, _: _wide(x) + offset


def _wild(x: Tensor, g: torch.Generator) -> Tensor:
    drawn = torch.randn(x.shape, generator=g, dtype=torch.float64).mul_(20).exp_()
    return (drawn * _wide(x).sign()).clamp(torch.finfo(x.dtype).min, torch.finfo(x.dtype).max)


def _sprinkled(*numbers: float) -> Content:
    def sprinkle(x: Tensor, g: torch.Generator) -> Tensor:
        # Every fifth element from a random start, so that some rows and vectors contain one and some do not.
        flat = x.view(-1)
        places = torch.arange(int(torch.randint(0, min(5, x.numel()), (), generator=g)), flat.numel(), 5)
        flat[places] = torch.tensor(numbers, dtype=x.dtype).repeat(len(places))[: len(places)].to(x.device)
        return x

    return sprinkle


def _denormal(x: Tensor, g: torch.Generator) -> Tensor:
    small = torch.finfo(x.dtype).tiny / 8
    return _sprinkled(small, -small, -0.0, 0.0)(x, g)


def _single(number: float, *, last: bool = False) -> Content:
    def put(x: Tensor, g: torch.Generator) -> Tensor:
        place = x.numel() - 1 if last else int(torch.randint(0, x.numel(), (), generator=g))
        x.view(-1)[place] = number
        return x

    return put


def _rows(number: float, dim: int) -> Content:
    def fill(x: Tensor, g: torch.Generator) -> Tensor:
        if x.dim() == 0:
            return torch.full_like(x, number)
        lines = x.movedim(dim, -1)
        chosen = torch.rand(lines.shape[:-1], generator=g) < 1 / 2
        chosen.view(-1)[0] = True
        lines[chosen.to(x.device)] = number
        return x

    return fill


def _powers_of_two(x: Tensor, g: torch.Generator) -> Tensor:
    # Quotients and products of these are exact, and often lie halfway between two numbers of a narrower type.
    exponents = torch.randint(_SMALLEST_POWER, _LARGEST_POWER + 1, x.shape, generator=g)
    return _wide(x).sign() * torch.exp2(exponents.to(torch.float64)).to(x.device)


def _constant(x: Tensor, _: torch.Generator) -> Tensor:
    return torch.full_like(x, x.view(-1)[0].item())


def _clustered(x: Tensor, _: torch.Generator) -> Tensor:
    return 1 + 1e-3 * _wide(x)


def _outlier(x: Tensor, g: torch.Generator) -> Tensor:
    return _single(1e4)(x, g)


def _ordered(*, descending: bool) -> Content:
    return lambda x, _: x.view(-1).sort(descending=descending).values.view(x.shape)


_FLOATING: dict[str, tuple[Family, Content]] = {
    **{f"times {factor:g}": (Family.MAGNITUDE, _scaled(factor)) for factor in _SCALES},
    **{f"plus {offset:g}": (Family.MAGNITUDE, _moved(offset)) for offset in _OFFSETS},
    "of very different magnitudes": (Family.MAGNITUDE, _wild),
    "with one outlier": (Family.MAGNITUDE, _outlier),
    "close to 1": (Family.MAGNITUDE, _clustered),
    "times -1": (Family.EDGE, lambda x, _: -x),
    "positive": (Family.EDGE, lambda x, _: x.abs()),
    "negative": (Family.EDGE, lambda x, _: -x.abs()),
    "zero": (Family.EDGE, lambda x, _: torch.zeros_like(x)),
    "negative zero": (Family.EDGE, lambda x, _: torch.full_like(x, -0.0)),
    "one": (Family.EDGE, lambda x, _: torch.ones_like(x)),
    "constant": (Family.EDGE, _constant),
    "of halves": (Family.EDGE, lambda x, _: (2 * x).floor() + 0.5),
    "of small integers": (Family.EDGE, lambda x, _: (2 * x).round()),
    "of powers of two": (Family.EDGE, _powers_of_two),
    "with ties": (Family.EDGE, lambda x, _: x.sign()),
    "half zero": (Family.EDGE, lambda x, g: x * (torch.rand(x.shape, generator=g) < 1 / 2).to(x)),
    "sorted": (Family.EDGE, _ordered(descending=False)),
    "sorted, largest first": (Family.EDGE, _ordered(descending=True)),
    "of sorted small integers": (Family.EDGE, lambda x, _: (2 * x).round().view(-1).sort().values.view(x.shape)),
    "with rows of zero": (Family.EDGE, _rows(0.0, -1)),
    **{f"with {name}": (Family.SPECIAL, _sprinkled(*numbers)) for name, numbers in _SPECIAL.items()},
    "with denormals and signed zeros": (Family.SPECIAL, _denormal),
    "with one NaN": (Family.SPECIAL, _single(float("nan"))),
    "with NaN at the end": (Family.SPECIAL, _single(float("nan"), last=True)),
    "with one infinity": (Family.SPECIAL, _single(float("inf"))),
    "with one -infinity": (Family.SPECIAL, _single(float("-inf"))),
    **{f"with rows of {name}": (Family.SPECIAL, _rows(number, -1)) for name, number in _ROW_VALUES.items()},
    "with columns of -inf": (Family.SPECIAL, _rows(float("-inf"), 0)),
}

# -- complex numbers ---------------------------------------------------------------------------------


def _in_both_parts(content: Content) -> Content:
    def change(x: Tensor, g: torch.Generator) -> Tensor:
        return torch.view_as_complex(content(torch.view_as_real(x), g).contiguous())

    return change


# Without special values: formulas for complex numbers treat NaN and infinities differently.
_COMPLEX: dict[str, tuple[Family, Content]] = {
    what: (family, _in_both_parts(content))
    for what, (family, content) in _FLOATING.items()
    if family is not Family.SPECIAL
}

# -- integers -----------------------------------------------------------------------------------------


def _limit(name: str, *, everywhere: bool) -> Content:
    def put(x: Tensor, g: torch.Generator) -> Tensor:
        number = getattr(torch.iinfo(x.dtype), name)
        return torch.full_like(x, number) if everywhere else _single(number)(x, g)

    return put


def _integer(number: float) -> Content:
    def put(x: Tensor, g: torch.Generator) -> Tensor:
        info = torch.iinfo(x.dtype)
        return _single(max(info.min, min(int(number), info.max)))(x, g)

    return put


def _one_past(x: Tensor, g: torch.Generator) -> Tensor:
    # An index just past a tensor's end: one more than the largest.
    return _single(min(int(x.max()) + 1, torch.iinfo(x.dtype).max))(x, g)


def _negated(x: Tensor, _: torch.Generator) -> Tensor:
    return -x if torch.iinfo(x.dtype).min < 0 else x


def _centered(x: Tensor, _: torch.Generator) -> Tensor:
    return x - x.view(-1).median() if torch.iinfo(x.dtype).min < 0 else x


def _raised(number: int) -> Content:
    def add(x: Tensor, _: torch.Generator) -> Tensor:
        highest = torch.iinfo(x.dtype).max - number
        return x if highest < 0 else x.clamp(max=highest) + number

    return add


_INTEGER: dict[str, tuple[Family, Content]] = {
    "zero": (Family.INTEGER, lambda x, _: torch.zeros_like(x)),
    "one": (Family.INTEGER, lambda x, _: torch.ones_like(x)),
    "times -1": (Family.INTEGER, _negated),
    "of both signs": (Family.INTEGER, _centered),
    "with one -1": (Family.INTEGER, lambda x, g: _single(-1)(x, g) if torch.iinfo(x.dtype).min < 0 else x),
    "with one past the largest": (Family.INTEGER, _one_past),
    "with one that is far too large": (
        Family.INTEGER,
        lambda x, g: _single(min(10**6, torch.iinfo(x.dtype).max))(x, g),
    ),
    # Beyond these, float32 and float64 cannot represent every integer.
    **{f"plus 2^{power}": (Family.INTEGER, _raised(2**power)) for power in (24, 53)},
    "with one largest integer": (Family.INTEGER, _limit("max", everywhere=False)),
    "with one smallest integer": (Family.INTEGER, _limit("min", everywhere=False)),
    "of largest integers": (Family.INTEGER, _limit("max", everywhere=True)),
    "constant": (Family.INTEGER, _constant),
    "sorted": (Family.INTEGER, _ordered(descending=False)),
    "sorted, largest first": (Family.INTEGER, _ordered(descending=True)),
    "in another order": (Family.INTEGER, lambda x, g: x.view(-1)[torch.randperm(x.numel(), generator=g)].view(x.shape)),
}

# -- booleans -----------------------------------------------------------------------------------------


def _other_bytes(x: Tensor, g: torch.Generator) -> Tensor:
    """The same booleans, with True stored as bytes other than 1, as in memory that another program wrote."""
    bytes_of = torch.randint(2, 256, x.shape, generator=g, dtype=torch.uint8).to(x.device)
    return (bytes_of * x.to(torch.uint8)).view(torch.bool)


_BOOLEAN: dict[str, tuple[Family, Content]] = {
    "true": (Family.EDGE, lambda x, _: torch.ones_like(x)),
    "false": (Family.EDGE, lambda x, _: torch.zeros_like(x)),
    "inverted": (Family.EDGE, lambda x, _: ~x),
    "with one true": (Family.EDGE, lambda x, g: _single(1)(torch.zeros_like(x), g)),
    "with one false": (Family.EDGE, lambda x, g: _single(0)(torch.ones_like(x), g)),
    "in bytes other than 0 and 1": (Family.EDGE, _other_bytes),
}

_TABLES: tuple[tuple[Callable[[Tensor], bool], dict[str, tuple[Family, Content]]], ...] = (
    (_is_floating, _FLOATING),
    (_is_complex, _COMPLEX),
    (is_integer, _INTEGER),
    (_is_boolean, _BOOLEAN),
)


@dataclass(frozen=True)
class _Placed:
    """How to put a given number into tensors of one kind.

    Attributes:
        family: the family of the variations.
        content: puts a number into a tensor.
        takes: whether tensors of this kind can contain the number, and no other content covers it.
    """

    family: Family
    content: Callable[[float], Content]
    takes: Callable[[float], bool]


_PLACED: dict[Callable[[Tensor], bool], _Placed] = {
    _is_floating: _Placed(Family.NUMBER, _sprinkled, math.isfinite),
    is_integer: _Placed(Family.INTEGER, _integer, lambda number: float(number).is_integer() and number not in (-1, 0)),
}
