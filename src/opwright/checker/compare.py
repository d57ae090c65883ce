"""Whether results are right: how far from the oracle they may lie, and what a wrong one looks like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.case import LARGE_BYTES, Case, Family
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opwright.checker.subject import Subject

# Relative and absolute: those of torch.testing.assert_close, but for float64, where its 1e-7 would let computation in
# float32 pass. Other dtypes are compared exactly.
_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-9, 1e-10),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-9, 1e-10),
}
# A kernel may be this many times farther from the oracle than the reference in the same dtype is.
_SLACK = 8.0

_KINDS = {
    Family.SAMPLE: Kind.WRONG_RESULT,
    Family.DTYPE: Kind.WRONG_DTYPE,
    Family.BAD_DTYPE: Kind.WRONG_DTYPE,
    Family.STRIDES: Kind.STRIDES,
    Family.OFFSET: Kind.OFFSET,
    Family.SIZE: Kind.SIZE,
    Family.EMPTY: Kind.SIZE,
    Family.TAIL: Kind.TAIL,
    Family.SPECIAL: Kind.SPECIAL_VALUES,
    Family.FAR: Kind.INDEX_OVERFLOW,
    Family.BAD_RANK: Kind.BAD_INPUT,
    Family.BAD_SIZE: Kind.BAD_INPUT,
    Family.BAD_DEVICE: Kind.BAD_INPUT,
}

_BAD = (Family.BAD_RANK, Family.BAD_SIZE, Family.BAD_DEVICE)

# Wrong elements that all lie within so many of the end were left over by a vector loop.
_TAIL_ELEMENTS = 16
# So many are compared at once: in float64, and with what lies between, they take many times their memory.
_AT_ONCE = 2**22


@dataclass(frozen=True)
class Expected:
    """What a case should give.

    Attributes:
        refusal: why the reference refuses the arguments; the operator has to refuse them too. Empty if it does not.
        own: the results of the reference, in the dtypes of the arguments: these say shapes and dtypes.
        precise: the results of the oracle, in float64: these say what is right.
    """

    refusal: str = ""
    own: tuple[Any, ...] = ()
    precise: tuple[Any, ...] = ()


def expected(subject: Subject, case: Case) -> Expected:
    """What `case` should give, by the reference and the oracle."""
    op = subject.op
    try:
        arguments = case.fresh()
        positional, keywords = op.spread(arguments)
        own = subject.outcome(op.reference(*positional, **keywords), arguments)
    except Exception as error:  # noqa: BLE001  the author's own code: whatever it raises is its refusal
        return Expected(refusal=first_line(error))
    if any(tensor.nbytes > LARGE_BYTES for tensor in derive.tensors(case.arguments)):
        # In float64 these would be several times as large.
        return Expected(own=tuple(_kept(own)), precise=tuple(_kept(own)))
    try:
        arguments = case.fresh()
        precise = subject.outcome(*derive.oracle(op, arguments))
    except Exception as error:  # noqa: BLE001  as above: it does not take float64, and speaks for itself in its own dtype
        if op.hand_written_oracle is not None:
            return Expected(refusal=first_line(error))
        precise = own
    if _shapes(own) != _shapes(precise):
        if op.hand_written_oracle is not None:
            told = f"the oracle gives shapes {_shapes(precise)}, the reference {_shapes(own)}: they have to agree"
            return Expected(refusal=told)
        precise = own  # the shapes depend on the dtype, as those of x.view(torch.uint8) do
    return Expected(own=tuple(_kept(own)), precise=tuple(_kept(precise)))


def judge(subject: Subject, case: Case, results: list[Any]) -> Failure | None:
    """What is wrong with the `results` of `case`; None where they are right."""
    wanted = subject.expected(case)
    code = subject.code(case)
    if wanted.refusal:
        return Failure(
            Kind.BAD_INPUT,
            case.name,
            code,
            got=", ".join(described(result) for result in results),
            expected=f"an error, as the reference gives: {wanted.refusal}",
        )
    if len(results) != len(wanted.own):
        return Failure(
            Kind.RESULT_TYPE, case.name, code, got=f"{len(results)} results", expected=f"{len(wanted.own)} results"
        )
    for at, (result, own, precise) in enumerate(zip(results, wanted.own, wanted.precise, strict=True)):
        which = f"result {at}: " if len(results) > 1 else ""
        if isinstance(own, (list, tuple)):
            trios = zip(result, own, precise, strict=False)
            found = next((wrong for trio in trios if (wrong := differs(*trio, subject.op.tolerance))), None)
            if len(result) != len(own):
                found = Difference("type", f"{len(result)} tensors", f"{len(own)} tensors")
        else:
            found = differs(result, own, precise, subject.op.tolerance)
        if found:
            return Failure(_kind(case, found), case.name, code, got=which + found.got, expected=which + found.expected)
    return None


def _kind(case: Case, found: Difference) -> Kind:
    """What a difference means, given what the case varies."""
    if found.sort == "type" and case.family not in _BAD:
        return Kind.RESULT_TYPE
    if case.family is Family.DTYPE and case.claimed:
        return Kind.WRONG_RESULT  # the kernel knows the dtype: it computes wrongly with it
    if found.sort == "tail" and case.family in (Family.SAMPLE, Family.SIZE):
        return Kind.TAIL
    return _KINDS[case.family]


@dataclass(frozen=True)
class Difference:
    """How a result differs from what is expected.

    Attributes:
        sort: "type" (shape, dtype), "tail" (only its last few elements), or "values".
        got: what it is.
        expected: what it should be.
    """

    sort: str
    got: str
    expected: str


def differs(
    result: Any,  # noqa: ANN401  whatever operators return
    own: Any,  # noqa: ANN401  likewise
    precise: Any,  # noqa: ANN401  likewise
    tolerance: Mapping[torch.dtype, float] = MappingProxyType({}),
) -> Difference | None:
    """How `result` differs from the reference's `own` and the oracle's `precise` one; None where it does not."""
    if not isinstance(own, Tensor):
        # None is a gradient that nobody wants; to give one all the same is a waste, not a fault.
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


def described(value: Any) -> str:  # noqa: ANN401  whatever operators take and return
    """A value in a few words: `float32 (16, 33)`."""
    if isinstance(value, Tensor):
        device = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}{device}"
    return repr(value)


def first_line(error: BaseException) -> str:
    """What an exception says first."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


def _right(result: Tensor, own: Tensor, precise: Tensor, slack: float, extra: float) -> Tensor:
    """Where `result` is right: near to the oracle's, or to the reference's in the same dtype."""
    near = _near(result, precise, slack, extra)
    return near if bool(near.all()) else near | _near(result, own, slack, extra)


def _near(result: Tensor, wanted: Tensor, slack: float, extra: float) -> Tensor:
    """Where `result` is as near to `wanted` as its dtype, the reference's own error and the author allow."""
    wide = torch.complex128 if result.is_complex() else torch.float64
    if result.dtype not in _TOLERANCES:
        exact = result == wanted.to(result.dtype)
        return exact | ((result.to(wide) - wanted.to(wide)).abs() <= extra) if extra else exact
    rtol, atol = _TOLERANCES[result.dtype]
    # What does not fit into the dtype is its infinity there.
    goal = wanted.to(result.dtype).to(wide)
    return torch.isclose(result.to(wide), goal, rtol=rtol, atol=atol + slack, equal_nan=True)


def _own_error(own: Tensor, precise: Tensor) -> float:
    """How far the reference may lie from the oracle: several times as far as it does in its own dtype."""
    if own is precise or own.dtype not in _TOLERANCES:
        return 0.0
    return _SLACK * max(0.0, _largest_gap(own, precise))


def _largest_gap(one: Tensor, other: Tensor) -> float:
    """The largest finite difference; -1 where there is none."""
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


def _close_numbers(result: Any, own: Any, precise: Any) -> bool:  # noqa: ANN401  whatever operators return
    """Whether Python's floating numbers are as near as those of float32: most come out of tensors."""
    if not all(isinstance(number, float) for number in (result, own, precise)):
        return False
    if math.isnan(own):
        return math.isnan(result)
    rtol, atol = _TOLERANCES[torch.float32]
    error = abs(own - precise)
    allowed = atol + (_SLACK * error if math.isfinite(error) else 0.0)
    return any(math.isclose(result, goal, rel_tol=rtol, abs_tol=allowed) for goal in (precise, own))


def _shapes(results: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in derive.tensors(results)]


def _kept(results: list[Any]) -> list[Any]:
    return [result.detach() if isinstance(result, Tensor) else result for result in results]
