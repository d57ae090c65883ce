"""The mutants of kernels that are written in Python."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import types
from typing import TYPE_CHECKING, Any

import tree_sitter_python
from tree_sitter import Language, Node, Parser

from opwright.checker.mutants.mutant import Change, Edit, Mutant
from opwright.checker.mutants.syntax import (
    CHECKS,
    argument_edits,
    mutants_of,
    number_edits,
    operator_edits,
    replaced,
    swapped,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from opwright.spec import Library

# Annotations and error messages, which do not compute results.
_SKIPPED = frozenset({"type", "string", "raise_statement", "assert_statement", "import_statement", "decorator"})
_LEAVES = frozenset({"raise_statement", "return_statement", "break_statement", "continue_statement"})


def python_mutants(library: Library) -> list[Mutant]:
    """The mutants of the functions in op.py that the kernels in Python call, in the order of the text.

    Functions that a reference also calls are left out, because a change would affect both.
    """
    file = library.root / "op.py"
    if not file.is_file():
        return []
    content = file.read_bytes()
    kernels = [kernel for op in library.ops.values() for kernel in op.python_kernels.values()]
    references = [op.reference for op in library.ops.values()]
    lines = _lines(_reachable(kernels, file)) - _lines(_reachable(references, file))
    root = _parser().parse(content).root_node
    return mutants_of(file, content, _edits(root, lines))


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_python.language()))


def _reachable(functions: Iterable[Callable[..., Any]], file: Path) -> list[types.FunctionType]:
    """The functions of `file` among `functions`, and those that they call by name, directly or indirectly."""
    found: dict[types.CodeType, types.FunctionType] = {}
    left = [_plain(function) for function in functions]
    while left:
        function = left.pop()
        if function is None or function.__code__ in found or function.__code__.co_filename != str(file):
            continue
        found[function.__code__] = function
        left += [_plain(function.__globals__.get(name)) for name in _names(function.__code__)]
    return list(found.values())


def _names(code: types.CodeType) -> set[str]:
    """The names of the globals that a function and its nested functions use."""
    nested = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, nested))


def _plain(value: Any) -> types.FunctionType | None:
    """The Python function that a compiler such as Triton or numba wraps."""
    for name in ("fn", "py_func", "__wrapped__"):
        inner = getattr(value, name, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return value if isinstance(value, types.FunctionType) else None


def _lines(functions: Iterable[types.FunctionType]) -> set[int]:
    lines: set[int] = set()
    for function in functions:
        source, first = inspect.getsourcelines(function)
        lines.update(range(first, first + len(source)))
    return lines


def _edits(node: Node, lines: set[int]) -> Iterator[Edit]:
    if node.type in _SKIPPED:
        return
    if node.start_point[0] + 1 in lines and node.type != "module":
        yield from _EDITS.get(node.type, _no_edits)(node)
    for child in node.named_children:
        yield from _edits(child, lines)


def _no_edits(_node: Node) -> Iterator[Edit]:
    yield from ()


def _comparison_edits(node: Node) -> Iterator[Edit]:
    for operator in node.children_by_field_name("operators"):
        yield from operator_edits(operator)


def _logic_edits(node: Node) -> Iterator[Edit]:
    operator = node.child_by_field_name("operator")
    if operator is not None:
        yield replaced(Change.LOGIC, operator, "or" if text_of(operator) == "and" else "and")


def _operand_edits(change: Change, node: Node) -> Iterator[Edit]:
    yield replaced(change, node, text_of(node.child_by_field_name("argument")))


def _index_edits(node: Node) -> Iterator[Edit]:
    for first, second in itertools.pairwise(node.children_by_field_name("subscript")):
        if text_of(first) != text_of(second):
            yield swapped(Change.INDEX_ORDER, first, second)


def _call_edits(node: Node) -> Iterator[Edit]:
    arguments = node.child_by_field_name("arguments")
    if arguments is not None and arguments.type == "argument_list":
        yield from argument_edits(arguments.named_children)


def _choice_edits(node: Node) -> Iterator[Edit]:
    first, _, second = node.named_children
    yield swapped(Change.CONDITION, first, second)


def _condition_edits(node: Node) -> Iterator[Edit]:
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if condition is None or body is None:
        return
    yield replaced(Change.CONDITION, condition, f"not ({text_of(condition)})")
    if node.child_by_field_name("alternative") is None and body.named_children:
        is_check = body.named_children[-1].type in _LEAVES
        yield replaced(Change.REMOVED_CHECK if is_check else Change.DROPPED_STATEMENT, node, "pass")


def _statement_edits(node: Node) -> Iterator[Edit]:
    if not node.named_children:
        return
    expression = node.named_children[0]
    if expression.type == "call":
        name = text_of(expression.child_by_field_name("function"))
        yield replaced(Change.REMOVED_CHECK if CHECKS.search(name) else Change.DROPPED_STATEMENT, node, "pass")
    elif expression.type == "augmented_assignment" or _assigns_again(expression):
        yield replaced(Change.DROPPED_STATEMENT, node, "pass")


def _assigns_again(node: Node) -> bool:
    """Whether an assignment changes an existing value, so that removing the assignment leaves no name undefined."""
    if node.type != "assignment":
        return False
    target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    if target is None or value is None:
        return False
    return (
        target.type in {"subscript", "attribute"}
        or re.search(rf"\b{re.escape(text_of(target))}\b", text_of(value)) is not None
    )


_EDITS: dict[str, Callable[[Node], Iterator[Edit]]] = {
    "comparison_operator": _comparison_edits,
    "binary_operator": lambda node: operator_edits(node.child_by_field_name("operator")),
    "augmented_assignment": lambda node: operator_edits(node.child_by_field_name("operator")),
    "boolean_operator": _logic_edits,
    "not_operator": functools.partial(_operand_edits, Change.LOGIC),
    "unary_operator": functools.partial(_operand_edits, Change.ARITHMETIC),
    "integer": number_edits,
    "float": number_edits,
    "true": lambda node: iter([replaced(Change.CONSTANT, node, "False")]),
    "false": lambda node: iter([replaced(Change.CONSTANT, node, "True")]),
    "subscript": _index_edits,
    "call": _call_edits,
    "if_statement": _condition_edits,
    "conditional_expression": _choice_edits,
    "expression_statement": _statement_edits,
}
