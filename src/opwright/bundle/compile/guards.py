"""Conditions on sizes that an export assumes and that the compiled code does not check."""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from typing import TYPE_CHECKING, Any

from opwright.bundle.format.manifest import Dimension

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch.export import ExportedProgram

    from opwright.bundle.source.samples import Inputs
    from opwright.bundle.source.shape import Size

    _Condition = Callable[[dict[str, int]], Any]

_SIZE = re.compile(r"L\['inputs'\]\[(\d+)\]\.size\(\)\[(\d+)\]")
# Two sizes that must be equal are listed in the manifest, and the host checks them.
_EQUAL = re.compile(rf"{_SIZE.pattern} == {_SIZE.pattern}")
# The operations that conditions consist of.
_UNARY: dict[type[ast.unaryop], Callable[..., Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARED: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "abs": abs,
    "int": int,
    "float": float,
    "bool": bool,
    **{f"math.{made.__name__}": made for made in (math.floor, math.ceil, math.trunc, math.sqrt, math.log2, math.fabs)},
}
_LARGEST_POWER = 64
# The export assumes nothing about the sizes 0 and 1, and samples are run at them.
_LEAST = 2
# The largest number of combinations of sizes that one condition is evaluated for.
_MOST = 2**16


def broken_guard(program: ExportedProgram, inputs: Inputs) -> str:
    """A condition that does not hold for all claimed sizes, and where it fails; empty if all conditions hold."""
    for code in getattr(program, "_guards_code", ()):  # a release without this attribute lists none
        if not _EQUAL.fullmatch(code):
            places = sorted({(int(number), int(at)) for number, at in _SIZE.findall(code)})
            dims = [inputs.shapes[number].dims[at] for number, at in places]
            condition = _condition(_SIZE.sub(lambda found: f"size_{found[1]}_{found[2]}", code))
            names = [f"size_{number}_{at}" for number, at in places]
            for sizes in _combinations(dims):
                if condition is not None and not _holds(condition, dict(zip(names, sizes, strict=True))):
                    words = _SIZE.sub(lambda found: f"{inputs.names[int(found[1])]}.shape[{found[2]}]", code)
                    return f"{words}, which is false for {' and '.join(map(str, sizes))}"
    return ""


def _condition(code: str) -> _Condition | None:
    """A function of the sizes by name; None if the code contains an unsupported construct."""
    try:
        return _function(ast.parse(code, mode="eval").body)
    except (SyntaxError, RecursionError, LookupError):
        return None


def _holds(condition: _Condition, sizes: dict[str, int]) -> bool:
    try:
        return bool(condition(sizes))
    except (LookupError, ArithmeticError, TypeError, ValueError):
        return True  # it contains an unknown name


def _constant(value: float) -> _Condition:
    return lambda _: value


def _function(node: ast.expr) -> _Condition:
    """A function that computes a condition without executing its text, which could contain any Python."""
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            found: _Condition = _constant(value)
        case ast.Name(id=name):
            found = operator.itemgetter(name)
        case ast.UnaryOp(op=op, operand=operand):
            found = _applied(_UNARY[type(op)], operand)
        case ast.BinOp(left=left, op=op, right=right):
            found = _applied(_BINARY[type(op)], left, right)
        case ast.BoolOp(op=op, values=values):
            found = _applied(lambda *terms: (all if isinstance(op, ast.And) else any)(terms), *values)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            found = _applied(_COMPARED[type(op)], left, right)
        case ast.Compare(left=left, ops=[op, *ops], comparators=[right, *rest]):
            first = ast.Compare(left, [op], [right])
            found = _function(ast.BoolOp(ast.And(), [first, ast.Compare(right, ops, rest)]))
        case ast.Call(func=function, args=arguments, keywords=[]):
            found = _applied(_FUNCTIONS[ast.unparse(function)], *arguments)
        case _:
            raise LookupError
    return found


def _applied(function: Callable[..., Any], *nodes: ast.expr) -> _Condition:
    arguments = [_function(node) for node in nodes]
    return lambda sizes: function(*(argument(sizes) for argument in arguments))


def _power(base: float, exponent: float) -> Any:
    if abs(exponent) > _LARGEST_POWER:
        raise OverflowError
    return base**exponent


_BINARY: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}


def _combinations(dims: Sequence[Size]) -> itertools.product[tuple[int, ...]]:
    """All combinations of sizes if there are few; otherwise the bounds, their neighbours, and steps between them."""
    share = int(_MOST ** (1 / max(len(dims), 1)))
    return itertools.product(*(_sizes(dim, share) for dim in dims))


def _sizes(dim: Size, most: int) -> list[int]:
    if not isinstance(dim, Dimension):
        return [dim]
    least = max(dim.min, _LEAST)
    last = dim.max if dim.max is not None else least + most
    if last - least < most:
        return list(range(least, last + 1))
    return sorted({least, least + 1, last - 1, last, *range(least, last, (last - least) // (most - 4) + 1)})
