"""Compares a result with the expected one: computes the error budget of each element, and describes a difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.spec.rounding import SMALL
from opwright.spec.tensor_bytes import bytes_equal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.spec.rounding import Nearby

# The relative error to allow for any computation in a dtype: a few roundings. The values are those of
# torch.testing.assert_close, except for float64, where its 1e-7 would accept a computation in float32. Other dtypes use
# their machine epsilon.
_RELATIVE = {
    torch.float16: 1e-3,
    torch.bfloat16: 1.6e-2,
    torch.float32: 1.3e-6,
    torch.float64: 1e-9,
    torch.complex64: 1.3e-6,
    torch.complex128: 1e-9,
}
# A result may be this many times as far from the oracle as the reference in the same dtype, or as the oracle's result
# for arguments changed in the last place: a kernel may round ten times where these round once.
_FACTOR = 8.0
# Draws of different sizes change a smooth result in proportion. If they are out of proportion by more than this factor,
# the result jumps: exactly at these arguments if the small draws change it too much, and near them if they change it
# too little.
_JUMP = 2.0**8
# Up to this relative error of the reference, nearby arguments need not be evaluated.
_SMALL_ERROR = 1e-4

# If only elements among this many at the end are wrong, a vector loop skipped the remainder.
_TAIL_ELEMENTS = 16
# The number of elements compared at a time: float64 copies and intermediate results take many times their memory.
_CHUNK_ELEMENTS = 2**22
# In a tensor of more than 2**31 elements, the indices of all wrong ones would take more memory than the tensor.
_MOST_COUNTED = 2**24


@dataclass(frozen=True)
class Difference:
    """How a result differs from the expected one.

    Attributes:
        sort: "type" (shape, dtype or device), "tail" (only the last few elements), or "values".
        got: the description of the result.
        expected: the description of the expected result.
        relative: the median relative error of the wrong elements; infinite if they are not numbers.
    """

    sort: str
    got: str
    expected: str
    relative: float = field(default=math.inf, compare=False)


@dataclass(frozen=True)
class Goal:
    """One expected result.

    Attributes:
        own: the reference's result in the dtypes of the arguments: a tensor, a number, a string or None.
        precise: the oracle's result.
        nearby: the oracle's results for arguments changed in the last place; None if they are not known.
        at: the index of this result among those of `nearby`.
    """

    own: Any
    precise: Any
    nearby: Nearby | None = None
    at: int = 0


def differs(
    result: Any, goal: Goal, tolerance: Mapping[torch.dtype, float] = MappingProxyType({})
) -> Difference | None:
    """How `result` differs from `goal` by more than rounding explains; None if it does not.

    Args:
        result: the result: a tensor, a number, a string or None.
        goal: the expected result.
        tolerance: by dtype, an absolute difference that the author accepts.
    """
    own = goal.own
    if not isinstance(own, Tensor):
        # None is an unwanted gradient; computing it anyway is wasteful, but not wrong.
        right = own is None or result in (own, goal.precise) or _close_numbers(result, goal)
        return None if right else Difference("values", repr(result), repr(own))
    if not isinstance(result, Tensor):
        return Difference("type", repr(result), described(own))
    if result.shape != own.shape or result.dtype != own.dtype or result.device != own.device:
        is_right = result.dtype == own.dtype and result.dim() == own.dim() and _is_rounded_shape(goal)
        return None if is_right else Difference("type", described(result), described(own))
    if result.is_meta:
        return None  # meta tensors have no data
    if bytes_equal(result, own):
        return None  # true of most results, and much cheaper than comparing numbers
    flat = replace(goal, own=own.flatten(), precise=goal.precise.flatten())
    wrong = _wrong(result.flatten(), flat, result.shape, tolerance.get(result.dtype, 0.0))
    return _difference(result, goal.precise, wrong) if len(wrong) else None


def _is_rounded_shape(goal: Goal) -> bool:
    """Whether the shape of a result depends on rounding, as that of `x[x > x.mean()]` does."""
    if goal.nearby is None or goal.own.is_meta:
        return False
    eps = torch.finfo(goal.own.dtype).eps if _is_numeric(goal.own) else goal.nearby.eps
    return any(draw.shape != goal.own.shape for draw in goal.nearby.leaf(goal.at, eps))


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


def _wrong(result: Tensor, goal: Goal, shape: Sequence[int], extra: float) -> Tensor:
    """The indices of elements of the flat `result`, originally of shape `shape`, that rounding does not explain."""
    found = []
    counted = 0
    parts = (tensor.split(_CHUNK_ELEMENTS) for tensor in (result, goal.own, goal.precise))
    for number, (some, own, precise) in enumerate(zip(*parts, strict=True)):
        near = _near(some, own, precise, extra, is_final=goal.nearby is None)
        places = (~near).nonzero().flatten()
        found.append(places + number * _CHUNK_ELEMENTS)
        counted += len(places)
        if goal.nearby is None and counted > _MOST_COUNTED:
            break
    wrong = torch.cat(found) if found else torch.empty(0, dtype=torch.int64)
    if len(wrong) and goal.nearby is not None:
        wrong = wrong[~_explained(result[wrong], goal, wrong, shape, extra)]
    return wrong


def _near(result: Tensor, own: Tensor, precise: Tensor, extra: float, *, is_final: bool) -> Tensor:
    """Where `result` is as close to the oracle as its dtype and the reference's own error there require."""
    if not _is_numeric(result):
        near = (result == precise.to(result.dtype)) | (result == own)
        return near | ((result.double() - precise.double()).abs() <= extra) if extra else near
    some, mine, goal = _widened(result, own, precise)
    error = (mine - goal).abs().nan_to_num(0.0, 0.0, 0.0)
    if not is_final:  # the reference may have jumped where its error is large
        error = error.where(error <= _SMALL_ERROR * goal.abs(), 0.0)
    return _same_kind(some, goal) | _same_kind(some, mine) | _within(some, goal, _FACTOR * error + extra, result.dtype)


def _eps(goal: Goal, nearby: Nearby) -> float:
    """The precision of a numeric result: that of its dtype, or of the coarsest argument if the reference rounds to it.

    With one float64 argument among float32 ones, a reference computes in float32 until it combines them.
    """
    eps: float = torch.finfo(goal.own.dtype).eps
    if nearby.eps <= eps:
        return eps
    _, own, precise = _widened(goal.own, goal.own, goal.precise)
    error = (own - precise).abs().nan_to_num(0.0, 0.0, 0.0)
    return nearby.eps if bool((error > nearby.eps / _JUMP * precise.abs()).any()) else eps


def _explained(result: Tensor, goal: Goal, places: Tensor, shape: Sequence[int], extra: float) -> Tensor:
    """Where changes of the arguments in the last place explain the wrong elements.

    Args:
        result: the wrong elements.
        goal: the expected result, flat.
        places: their indices in it.
        shape: the shape of the whole result.
        extra: the absolute difference that the author accepts.
    """
    nearby = goal.nearby
    if nearby is None:  # for the type checker
        raise AssertionError
    numeric = _is_numeric(result)
    eps = _eps(goal, nearby) if numeric else nearby.eps
    large = _drawn(nearby.leaf(goal.at, eps), goal, places)
    if not len(large):  # the oracle rejects other numbers, or returns other shapes for them
        return _near(result, goal.own[places], goal.precise[places], extra, is_final=True)
    # In float64 itself, smaller changes are lost: a result that jumps changes too little in larger draws.
    is_finest = eps * SMALL < torch.finfo(torch.float64).eps
    scale = 1 / SMALL if is_finest else SMALL
    other = _drawn(nearby.leaf(goal.at, eps, scale), goal, places) if nearby.in_float64 else large[:0]
    some, own, precise = _widened(result, goal.own[places], goal.precise[places])
    spread, step = (_largest(draws, precise) for draws in (large, other))
    smooth = step / scale if len(other) else spread
    here = (smooth > _JUMP * spread if numeric else step > 0) & (not is_finest)
    jumps = here | (spread > _JUMP * smooth if numeric else spread > 0)
    error = (own - precise).abs().nan_to_num(0.0, 0.0, 0.0)
    # A reference with the right magnitude and another sign or phase, such as an eigenvector, jumps.
    small_error = _JUMP * torch.maximum(spread, eps * precise.abs())
    turns = (error > small_error) & ((own.abs() - precise.abs()).abs() <= small_error)
    error = error.where(~turns, 0.0)
    if is_finest:  # all draws of the last place may cancel by chance
        spread = torch.maximum(spread, smooth)
    allowance = torch.maximum(nearby.accumulation(shape) * spread, error)
    right = ~jumps & _within(some, precise, _FACTOR * allowance + extra, result.dtype)
    # Near a jump, the results on both sides are right; at a jump, only those of the oracle and of the reference.
    beside = _FACTOR * smooth.clamp_max(spread / _JUMP) + extra if numeric else extra
    right |= _within(some, own, beside, result.dtype)
    if numeric and nearby.in_float64:
        # Where float64 itself cancels, as in 1 + erf(-9), only zero remains.
        right |= (precise == 0) & (own == 0) & (some.abs() <= torch.finfo(torch.float64).eps * nearby.largest)
    for draw in large:
        right |= ~here & ((jumps & _within(some, draw, beside, result.dtype)) | _same_kind(some, draw))
    return right


def _drawn(draws: list[Tensor], goal: Goal, places: Tensor) -> Tensor:
    """The elements at `places` of each draw, widened to float64 or complex128, of shape (draws, places)."""
    kept = [draw.flatten()[places] for draw in draws if draw.numel() == goal.precise.numel()]
    wide = torch.complex128 if goal.precise.is_complex() else torch.float64
    return torch.stack(kept).to(wide) if kept else torch.empty(0, len(places), dtype=wide)


def _largest(draws: Tensor, precise: Tensor) -> Tensor:
    """The largest finite difference of the draws at each place."""
    if not len(draws):
        return torch.zeros(draws.shape[1:], dtype=torch.float64)
    return (draws - precise).abs().nan_to_num(0.0, 0.0, 0.0).amax(0)


def _widened(result: Tensor, own: Tensor, precise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    wide = torch.complex128 if result.is_complex() else torch.float64
    # A number that overflows becomes NaN in some 8-bit floats, and has infinite parts in complex dtypes.
    rounded = precise.to(result.dtype).to(wide)  # PyTorch does not compute in 8-bit floats
    has_number = rounded.isfinite() if result.is_complex() else ~rounded.isnan()
    return result.to(wide), own.to(wide), torch.where(has_number, precise.to(wide), rounded)


def _is_numeric(tensor: Tensor) -> bool:
    """Whether results of this dtype are rounded; others are exact."""
    return tensor.is_floating_point() or tensor.is_complex()


def _same_kind(result: Tensor, other: Tensor) -> Tensor:
    """Where both are NaN, or the same infinity."""
    if result.is_complex():
        return ~result.isfinite() & ((result == other) | (result.isnan() & other.isnan()))
    return (result.isnan() & other.isnan()) | (result.isinf() & (result == other))


def _within(result: Tensor, goal: Tensor, allowance: Tensor | float, dtype: torch.dtype) -> Tensor:
    """Where `result` is as close to a finite `goal` as the dtype's error and `allowance` allow.

    An infinite result represents every number that is too large for its dtype. Where `allowance` is zero, as for a
    constant, it does not represent the largest finite number.
    """
    finite = goal.isfinite() & result.isfinite()
    if not (dtype.is_floating_point or dtype.is_complex):
        return finite & ((result - goal).abs() <= allowance)
    info = torch.finfo(dtype)
    allowed = _RELATIVE.get(dtype, info.eps) * goal.abs() + allowance + _FACTOR * info.tiny
    near = finite & ((result - goal).abs() <= allowed)
    if not dtype.is_complex:
        distance = (info.max - goal * result.sign()).clamp_min(0)  # to the largest finite number
        overflows = (goal.to(dtype).to(goal.dtype) == result) | (distance < allowance)
        near |= goal.isfinite() & result.isinf() & overflows
    return near


def _difference(result: Tensor, precise: Tensor, wrong: Tensor) -> Difference:
    total = result.numel()
    wide = torch.complex128 if result.is_complex() else torch.float64
    gaps = (result.flatten()[wrong].to(wide) - precise.flatten()[wrong].to(wide)).abs()
    finite = gaps[gaps.isfinite()]
    by = f", the largest difference is {float(finite.max()):.6g}" if finite.numel() else ""
    place = int(wrong[0])
    index = [int(i) for i in torch.unravel_index(wrong[0].cpu(), result.shape)] if result.dim() else []
    got, goal = result.flatten()[place].item(), precise.flatten()[place].item()
    count = f"more than {_MOST_COUNTED}" if len(wrong) > _MOST_COUNTED else str(len(wrong))
    at_end = total > 2 * _TAIL_ELEMENTS and place >= total - _TAIL_ELEMENTS
    return Difference(
        "tail" if at_end else "values",
        f"{described(result)}, at {index}: {got!r}; {count} of {total} elements differ{by}",
        f"at {index}: {goal!r}",
        _relative_error(result.flatten()[wrong].to(wide), precise.flatten()[wrong].to(wide)),
    )


def _relative_error(result: Tensor, precise: Tensor) -> float:
    errors = (result - precise).abs() / precise.abs()
    return float(errors.nan_to_num(math.inf).median())


def _close_numbers(result: Any, goal: Goal) -> bool:
    """Whether Python floats are as close as float32 requires: most of them are read from float32 tensors."""
    numbers = (result, goal.own, goal.precise)
    if not all(isinstance(number, float) for number in numbers):
        return False
    if math.isnan(goal.own):
        return math.isnan(result)
    if max(map(abs, numbers)) > torch.finfo(torch.float32).max:
        return any(math.isclose(result, other, rel_tol=_RELATIVE[torch.float32]) for other in numbers[1:])
    given, own = (torch.tensor([number], dtype=torch.float32) for number in numbers[:2])
    precise = torch.tensor([goal.precise], dtype=torch.float64)
    return not len(_wrong(given, replace(goal, own=own, precise=precise), (1,), 0.0))
