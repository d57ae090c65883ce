"""Validates the two kinds of expressions in exported programs that PyTorch evaluates as Python: sizes and guards."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The characters that both consist of, inside and outside quotes. With none of them can text break out of the place that
# PyTorch copies it to.
_CHARACTERS = re.compile(r"[A-Za-z0-9_ ().,+\-*/%<>=!'\[\]]*")
_LONGEST = 2**14
_MOST_DIGITS = 20
_LARGEST_POWER = 16
# 2^64 raised to the 16th power twice is still small enough to compute with.
_POWERS_IN_POWERS = 2

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_SYMBOL = re.compile(r"[a-z]{1,8}[0-9]{1,6}")
_FLOAT = re.compile(r"-?[0-9]{1,60}(\.[0-9]{0,60})?([eE][+-]?[0-9]{1,4})?")
_COMPUTES = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub)
_COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Not, ast.And, ast.Or)
_COMPOSED = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare)

# sympy's own functions, and those of torch.utils._sympy.functions that torch.export.load supports.
_FUNCTIONS = frozenset(
    (
        *("Add", "Mul", "Pow", "Max", "Min", "Mod", "Abs", "floor", "ceiling", "Eq", "Equality", "Ne"),
        *("Unequality", "Lt", "StrictLessThan", "Gt", "StrictGreaterThan", "Le", "LessThan", "Ge", "GreaterThan"),
        *("And", "Or", "Not", "Piecewise", "ExprCondPair", "Integer", "Rational", "FloorDiv", "ModularIndexing"),
        *("Where", "PythonMod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv", "LShift", "RShift"),
        *("PowByNatural", "FloatPow", "FloatTrueDiv", "IntTrueDiv", "IsNonOverlappingAndDenseIndicator"),
        *("TruncToFloat", "TruncToInt", "RoundToInt", "RoundDecimal", "ToFloat", "Identity"),
    )
)
_POWERS = frozenset({"Pow", "PowByNatural", "FloatPow", "LShift", "RShift"})
_CONSTANTS = frozenset({"true", "false", "oo"})

_GUARD_FUNCTIONS = frozenset({"max", "min", "abs", "int", "float", "bool", "round"})
_GUARD_METHODS = frozenset({"size", "stride", "storage_offset", "dim", "numel"})
_GUARD_MATH = frozenset({"floor", "ceil", "trunc", "sqrt", "isnan", "isinf", "inf", "log2", "fabs"})


def check_size(text: str) -> None:
    """Check the expression of a size, such as `Mul(Integer(2), Symbol('s0', integer=True))` or `2*s0`.

    Raises:
        ValueError: the text is not such an expression.
    """
    _check(text, "a size", _is_size)


def check_guard(text: str) -> None:
    """Check a guard, such as `L['x'].size()[0] % 2 == 0`.

    Raises:
        ValueError: the text is not a guard.
    """
    _check(text, "a guard", _is_guard)


def _check(text: str, what: str, allowed: Callable[[ast.expr], bool]) -> None:
    try:
        short = len(text) <= _LONGEST and _CHARACTERS.fullmatch(text) is not None
        tree = ast.parse(text, mode="eval").body if short else None
        right = tree is not None and _powers(tree) <= _POWERS_IN_POWERS and allowed(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        right = False
    if not right:
        msg = f"it has {text!r:.100} as {what}"
        raise ValueError(msg)


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))], keywords=assumptions):
            allowed = IDENTIFIER.fullmatch(name) is not None and all(map(_is_flag, assumptions))
        case ast.Call(func=ast.Name(id="Float"), args=[ast.Constant(value=str(number))], keywords=[precision]):
            right = precision.arg == "precision" and _is_index(precision.value)
            allowed = right and _FLOAT.fullmatch(number) is not None
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            allowed = name in _FUNCTIONS and all(map(_is_size, args))
        case ast.Tuple(elts=[value, condition]):
            allowed = _is_size(value) and _is_size(condition)
        case ast.Name(id=name):
            allowed = name in _CONSTANTS or _SYMBOL.fullmatch(name) is not None
        case ast.Constant(value=value):
            allowed = _is_number(value)
        case _:
            allowed = _is_composed(node, _is_size)
    return allowed


def _is_guard(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            allowed = name in _GUARD_FUNCTIONS and all(map(_is_guard, args))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=args, keywords=[]):
            allowed = name in _GUARD_MATH and all(map(_is_guard, args))
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[], keywords=[]):
            allowed = name in _GUARD_METHODS and _is_input(value)
        case ast.Attribute(value=ast.Name(id="math"), attr="inf") | ast.Name(id="inf"):
            allowed = True
        case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="size" | "stride"))):
            allowed = _is_guard(node.value) and _is_index(node.slice)
        case ast.Subscript():
            allowed = _is_input(node)
        case ast.Constant(value=str(value)):
            allowed = IDENTIFIER.fullmatch(value) is not None  # a string input must be an identifier
        case ast.Constant(value=value):
            allowed = _is_number(value)
        case _:
            allowed = _is_composed(node, _is_guard)
    return allowed


def _is_composed(node: ast.expr, part: Callable[[ast.expr], bool]) -> bool:
    if not isinstance(node, _COMPOSED):
        return False
    children = list(ast.iter_child_nodes(node))
    return all(
        isinstance(child, _COMPUTES + _COMPARES) or (isinstance(child, ast.expr) and part(child)) for child in children
    )


def _is_input(node: ast.expr) -> bool:
    """Whether the node is `L['x']`, or an element of it."""
    if isinstance(node, ast.Subscript):
        return _is_index(node.slice) and (
            _is_input(node.value) or (isinstance(node.value, ast.Name) and node.value.id == "L")
        )
    return False


def _is_index(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(name)):
            return IDENTIFIER.fullmatch(name) is not None
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(at))) | ast.Constant(value=int(at)):
            return _is_number(at)
    return False


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float)) and len(str(value)) <= _MOST_DIGITS + 5


def _is_flag(keyword: ast.keyword) -> bool:
    known = keyword.arg is not None and IDENTIFIER.fullmatch(keyword.arg) is not None
    return known and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, (bool, type(None)))


def _powers(node: ast.AST) -> int:
    """How deeply powers are nested; more than the limit if an exponent is not a small number."""
    inside = max(map(_powers, ast.iter_child_nodes(node)), default=0)
    exponent: ast.expr | None = None
    match node:
        case ast.BinOp(op=ast.Pow(), right=exponent):
            pass
        case ast.Call(func=ast.Name(id=name), args=[_, exponent]) if name in _POWERS:
            pass
        case _:
            return inside
    return inside + 1 if exponent is not None and _is_small_exponent(exponent) else _POWERS_IN_POWERS + 1


def _is_small_exponent(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner) | ast.Call(func=ast.Name(id="Integer"), args=[inner]):
            return _is_small_exponent(inner)
        case ast.Call(func=ast.Name(id="Rational"), args=[up, down]):
            return _is_small_exponent(up) and _is_small_exponent(down)
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and abs(value) <= _LARGEST_POWER
    return False
