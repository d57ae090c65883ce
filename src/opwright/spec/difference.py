"""Compares a result with the expected one: the tolerance, and the description of a difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

# (rtol, atol): the defaults of torch.testing.assert_close, except for float64, where its rtol of 1e-7 would accept a
# computation in float32. Other dtypes are compared exactly.
_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-9, 1e-10),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-9, 1e-10),
}
# A result may be this many times as far from the oracle as the reference in the same dtype is.
_SLACK = 8.0

# If all wrong elements are among this many last ones, a vector loop skipped the remainder.
_TAIL_ELEMENTS = 16
# The number of elements compared at once: float64 copies and intermediate results take many times their memory.
_AT_ONCE = 2**22


@dataclass(frozen=True)
class Difference:
    """How a result differs from the expected one.

    Attributes:
        sort: "type" (shape, dtype or device), "tail" (only the last few elements), or "values".
        got: the description of the result.
        expected: the description of the expected result.
    """

    sort: str
    got: str
    expected: str


def differs(
    result: Any,
    own: Any,
    precise: Any,
    tolerance: Mapping[torch.dtype, float] = MappingProxyType({}),
) -> Difference | None:
    """How `result` differs from the reference's result `own` and the oracle's `precise`; None if it does not."""
    if not isinstance(own, Tensor):
        # None is a gradient that is not wanted; computing it anyway is a waste, not a fault.
        right = own is None or result in (own, precise) or _close_numbers(result, own, precise)
        return None if right else Difference("values", repr(result), repr(own))
    if not isinstance(result, Tensor):
        return Difference("type", repr(result), described(own))
    if result.shape != own.shape or result.dtype != own.dtype or result.device != own.device:
        return Difference("type", described(result), described(own))
    extra = tolerance.get(result.dtype, 0.0)
    parts = [tensor.flatten().split(_AT_ONCE) for tensor in (result, own, precise)]
    slack = extra + max((_own_error(*pair) for pair in zip(*parts[1:], strict=True)), default=0.0)
    first, count, largest = 0, 0, -1.0
    for at, (some, its_own, its_precise) in enumerate(zip(*parts, strict=True)):
        wrong = (~_right(some, its_own, its_precise, slack, extra)).nonzero().flatten()
        if len(wrong):
            first = first if count else at * _AT_ONCE + int(wrong[0])
            count += len(wrong)
            largest = max(largest, _largest_gap(some[wrong], its_precise[wrong]))
    return _difference(result, precise, first, count, largest) if count else None


def described(value: Any) -> str:
    """A short description of a value: `float32 (16, 33)`."""
    if isinstance(value, Tensor):
        device = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}{device}"
    return repr(value)


def first_line(error: BaseException) -> str:
    """The class and the first line of an exception."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


def _right(result: Tensor, own: Tensor, precise: Tensor, slack: float, extra: float) -> Tensor:
    """Where `result` is close to the oracle's, or to the reference's in the same dtype."""
    near = _near(result, precise, slack, extra)
    return near if bool(near.all()) else near | _near(result, own, slack, extra)


def _near(result: Tensor, wanted: Tensor, slack: float, extra: float) -> Tensor:
    """Where `result` is as close to `wanted` as its dtype, the reference's error and the author's tolerance require."""
    wide = torch.complex128 if result.is_complex() else torch.float64
    if result.dtype not in _TOLERANCES:
        exact = result == wanted.to(result.dtype)
        return exact | ((result.to(wide) - wanted.to(wide)).abs() <= extra) if extra else exact
    rtol, atol = _TOLERANCES[result.dtype]
    # A value that overflows the dtype is infinite in it.
    goal = wanted.to(result.dtype).to(wide)
    return torch.isclose(result.to(wide), goal, rtol=rtol, atol=atol + slack, equal_nan=True)


def _own_error(own: Tensor, precise: Tensor) -> float:
    """The error that the reference justifies: `_SLACK` times its largest distance from the oracle."""
    if own is precise or own.dtype not in _TOLERANCES:
        return 0.0
    return _SLACK * max(0.0, _largest_gap(own, precise))


def _largest_gap(one: Tensor, other: Tensor) -> float:
    """The largest finite difference; -1 if there is none."""
    wide = torch.complex128 if one.is_complex() else torch.float64
    gaps = (one.to(wide) - other.to(wide)).abs()
    finite = gaps[gaps.isfinite()]
    return float(finite.max()) if finite.numel() else -1.0


def _difference(result: Tensor, precise: Tensor, place: int, count: int, largest: float) -> Difference:
    total = result.numel()
    index = [int(i) for i in torch.unravel_index(torch.tensor(place), result.shape)] if result.dim() else []
    got, goal = result.flatten()[place].item(), precise.flatten()[place].item()
    by = f", the largest difference is {largest:.6g}" if largest >= 0 else ""
    at_end = total > 2 * _TAIL_ELEMENTS and place >= total - _TAIL_ELEMENTS
    return Difference(
        "tail" if at_end else "values",
        f"{described(result)}, at {index}: {got!r}; {count} of {total} elements differ{by}",
        f"at {index}: {goal!r}",
    )


def _close_numbers(result: Any, own: Any, precise: Any) -> bool:
    """Whether Python floats are as close as float32 requires: most of them come out of float32 tensors."""
    if not all(isinstance(number, float) for number in (result, own, precise)):
        return False
    if math.isnan(own):
        return math.isnan(result)
    rtol, atol = _TOLERANCES[torch.float32]
    error = abs(own - precise)
    allowed = atol + (_SLACK * error if math.isfinite(error) else 0.0)
    return any(math.isclose(result, goal, rel_tol=rtol, abs_tol=allowed) for goal in (precise, own))
