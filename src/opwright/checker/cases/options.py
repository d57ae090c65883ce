"""Other values for non-tensor arguments: numbers, flags, strings, lists, and optional arguments."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import textwrap
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Family
from opwright.checker.cases.sizes import SPLIT_ROWS
from opwright.checker.cases.variation import Variation, is_integer, tensors
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opwright.checker.cases.case import Case
    from opwright.spec import Op
    from opwright.spec.schema import Parameter

_INTEGERS = (0, 1, -1, 2, -2, 3, 4, 5, 8)
# Beyond 32 bits, and at the limits of 64 bits: a kernel that stores them in an int truncates them.
_EXTREMES = (2**31, 2**32, 2**32 + 1, -(2**31) - 1, 2**63 - 1, -(2**63))
# These suit dimensions in any order, sizes and strides.
_INTEGER_LISTS = ((0,), (1,), (-1,), (0, 1), (1, 0), (-1, 0), (-2, -1), (2, 0), (2, 3), (0, 1, 2), (2, 0, 1))
_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e-10, 1e10, 3.7, -0.3)
_LITERAL_TYPES = (int, float, str)
# The number of literals tried per type: those in the source come before those in its constants, such as a table.
_MOST_LITERALS = 32
_LONGEST = 40
_MOST_THRESHOLDS = 12
# Other variations cover larger numbers.
_LARGEST_THRESHOLD = 1e6


def options(op: Op, case: Case) -> Iterator[Variation]:
    """Yield variations of the non-tensor arguments of `case`."""
    literals = _literals(op.reference)
    for parameter in op.parameters:
        value = case.arguments[parameter.name]
        seen: list[Any] = [value]
        for other in _others(op, parameter, value, literals, case):
            if _is_wanted(op, parameter) and len(other) != len(value):
                continue  # autograd always passes a flag for each gradient
            if not any(_same(other, one) for one in seen):
                seen.append(other)
                yield given(parameter.name, other)


def thresholds(op: Op, case: Case) -> list[float]:
    """The numbers with which a reference may compare tensor values: its options in `case`, and its literals."""
    literals = _literals(op.reference)
    given = [leaf for leaf in pytree.tree_leaves(case.arguments) if isinstance(leaf, (int, float))]
    written = [number for one in (*literals.get(float, ()), *literals.get(int, ())) for number in (one, -one)]
    numbers = (float(one) for one in (*given, *written) if not isinstance(one, bool))
    found = dict.fromkeys(number for number in numbers if abs(number) <= _LARGEST_THRESHOLD)
    return list(found)[:_MOST_THRESHOLDS]


def given(name: str, value: Any) -> Variation:
    """The variation in which the argument `name` is `value`."""
    shown = f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else _shown(value)
    return Variation(f"{name}={shown}", Family.OPTION, lambda arguments: {**arguments, name: value}, name)


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)) and any(isinstance(one, Tensor) for one in value):
        return f"[{len(value)} tensors]"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return one is other
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


def _is_wanted(op: Op, parameter: Parameter) -> bool:
    """Whether a parameter of a backward operator tells which gradients to compute."""
    return bool(op.gradients_of) and parameter is op.parameters[-1] and parameter.type == "List[bool]"


def _others(op: Op, parameter: Parameter, value: Any, literals: dict[type, list[Any]], case: Case) -> Iterator[Any]:
    kind = parameter.type
    if kind.startswith("Optional["):
        kind = kind.removeprefix("Optional[")[:-1]
        if value is not None:
            yield None
    if kind.startswith("List["):
        yield from _lists(kind.removeprefix("List[")[:-1], value, case)
    elif kind == "Tensor":
        if value is None:
            yield from _tensors_like(case)
            yield from _results(op, case)
    else:
        if kind == "int":
            yield from _integers_in(case)
        yield from _SCALARS.get(kind, _nothing)(value, literals)


def _integers(value: Any, literals: dict[type, list[Any]]) -> Iterable[Any]:
    around = () if value is None else (value - 1, value + 1, -value, 2 * value)
    return (*around, *_INTEGERS, *literals.get(int, ()), SPLIT_ROWS, *_EXTREMES)


def _integers_in(case: Case) -> Iterator[int]:
    """Yield an ordinary, the least and the greatest element of each integer tensor: an option may be such an index."""
    for _, tensor in tensors(case.arguments):
        if is_integer(tensor) and tensor.numel() and not tensor.is_meta:
            numbers = tensor.flatten().to(torch.int64)  # PyTorch has no minimum for other unsigned integers than bytes
            yield from (int(one) for one in (numbers[0], numbers.min(), numbers.max()))


def _floats(value: Any, literals: dict[type, list[Any]]) -> Iterable[Any]:
    around = () if value is None else (-value, 10 * value, value / 10)
    return (*around, *_FLOATS, *literals.get(float, ()))


def _flags(value: Any, _: dict[type, list[Any]]) -> Iterable[Any]:
    return (not value,) if value is not None else (True, False)


def _strings(value: Any, literals: dict[type, list[Any]]) -> Iterable[Any]:
    return (*literals.get(str, ()), "", *((value.upper(), f"{value}_") if value else ()))


def _dtypes(_: Any, __: dict[type, list[Any]]) -> Iterable[Any]:
    return (torch.float32, torch.float64, torch.float16, torch.int64, torch.bool)


def _nothing(_: Any, __: dict[type, list[Any]]) -> Iterable[Any]:
    return ()


_SCALARS: dict[str, Callable[[Any, dict[type, list[Any]]], Iterable[Any]]] = {
    "int": _integers,
    "float": _floats,
    "number": _floats,
    "bool": _flags,
    "str": _strings,
    "ScalarType": _dtypes,
}


def _lists(kind: str, value: Any, case: Case) -> Iterator[Any]:
    """Yield lists with other lengths, orders and elements."""
    yield []
    if kind == "int":
        yield from map(list, _INTEGER_LISTS)
    if not value:
        found = _tensors_like(case) if "Tensor" in kind else iter(())
        yield from ([one] for one in found)
        return
    listed = list(value)
    yield from (listed[:1], listed[:-1], [*listed, listed[-1]], listed[::-1], [listed[0]] * len(listed))
    if kind.startswith("Optional["):
        yield from ([*listed[:at], None, *listed[at + 1 :]] for at in range(len(listed)))
    if kind in {"int", "float"}:
        for at, one in enumerate(listed):
            yield from ([*listed[:at], other, *listed[at + 1 :]] for other in (0, 1, -1, one + 1, -one))
    if kind == "bool":
        yield from ([*listed[:at], not one, *listed[at + 1 :]] for at, one in enumerate(listed))


def _tensors_like(case: Case) -> Iterator[Tensor]:
    """Yield tensors for an optional argument: like another argument, or a row, a column or one element of it."""
    for _, tensor in tensors(case.arguments):
        if not tensor.is_meta:
            dense = tensor.detach().clone(memory_format=torch.contiguous_format)
            yield dense
            if tensor.dim() > 1 and tensor.numel():
                yield dense.select(0, 0).clone()
                yield dense.select(-1, 0).clone()
                yield dense.flatten(1)[0].clone()
                yield dense[..., 0, :].clone()
            if tensor.dim() == 1:
                yield torch.ones_like(dense, dtype=torch.bool)


def _results(op: Op, case: Case) -> Iterator[Tensor]:
    """Yield the reference's results, whose shape an optional tensor such as `out` may require."""
    positional, keywords = op.spread(case.fresh())
    with contextlib.suppress(Exception), torch.random.fork_rng([]):
        for tensor in derive.tensors(op.reference(*positional, **keywords)):
            if not tensor.is_meta:
                yield tensor.detach().clone(memory_format=torch.contiguous_format)


@functools.lru_cache
def _literals(function: Callable[..., Any]) -> dict[type, list[Any]]:
    """The literals in the source of a reference and in the constants that it uses, which it may compare with."""
    found: dict[type, list[Any]] = {}

    def keep(value: Any) -> None:
        if type(value) not in _LITERAL_TYPES:
            return
        kept = found.setdefault(type(value), [])
        if len(kept) < _MOST_LITERALS and value not in kept and (type(value) is not str or _is_option(value)):
            kept.append(value)

    with contextlib.suppress(OSError, TypeError, SyntaxError):
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in documentation:
                keep(node.value)
    code = getattr(function, "__code__", None)
    used = [function.__globals__.get(name) for name in code.co_names] if code is not None else []
    for value in used:
        if isinstance(value, (dict, set, frozenset, list, tuple)):
            for one in value:
                keep(one)
    return found


def _is_option(text: str) -> bool:
    """Whether a string may be the value of an option rather than a message."""
    return len(text) <= _LONGEST and " " not in text
