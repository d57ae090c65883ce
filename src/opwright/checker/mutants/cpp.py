"""The mutants of C++ and CUDA sources."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import tree_sitter_cpp
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
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Code for the compiler and for error messages, which does not compute results.
_SKIPPED = frozenset(
    {
        *("preproc_include", "preproc_def", "preproc_function_def", "preproc_call", "preproc_if", "preproc_ifdef"),
        *("static_assert_declaration", "template_argument_list", "template_parameter_list", "type_descriptor"),
        *("attribute_declaration", "attribute_specifier", "string_literal", "concatenated_string", "throw_statement"),
        *("using_declaration", "alias_declaration", "requires_clause", "concept_definition", "enumerator"),
    }
)
# `#if` blocks are searched, but not their conditions.
_PREPROCESSED = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"})
# A block such as TORCH_LIBRARY(ns, m) {...} registers operators.
_MACRO = re.compile(r"[A-Z][A-Z0-9_]*")
# std::min and std::max return the same integer in either order of the arguments, unlike for floating-point numbers.
_INTEGER_EXTREME = re.compile(
    r"std::(min|max)\s*<\s*(std::)?(unsigned|(unsigned )?(int|long|long long)|\w*(int|size|diff)\w*_t)\s*>"
)
_LEAVES = frozenset({"throw_statement", "return_statement", "break_statement", "continue_statement"})


def cpp_mutants(file: Path) -> list[Mutant]:
    """The mutants of a C++ or CUDA file, in the order of the text."""
    content = file.read_bytes()
    return mutants_of(file, content, _edits(_parser().parse(content).root_node))


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cpp.language()))


def _edits(node: Node) -> Iterator[Edit]:
    if (node.type in _SKIPPED and node.type not in _PREPROCESSED) or _registers(node):
        return
    if node.type in _EDITS:
        yield from _EDITS[node.type](node)
    for child in _searched(node):
        yield from _edits(child)


def _searched(node: Node) -> list[Node]:
    """The children in which to look for changes."""
    if node.type in _PREPROCESSED:
        condition = node.child_by_field_name("condition") or node.child_by_field_name("name")
        return [child for child in node.named_children if child != condition]
    if node.type == "call_expression" and _is_check_macro(node):
        # The other arguments are the message.
        arguments = node.child_by_field_name("arguments")
        return arguments.named_children[:1] if arguments else []
    return node.named_children


def _binary_edits(node: Node) -> Iterator[Edit]:
    operator = node.child_by_field_name("operator")
    if operator is not None and text_of(operator) in {"&&", "||"}:
        yield replaced(Change.LOGIC, operator, "||" if text_of(operator) == "&&" else "&&")
    else:
        yield from operator_edits(operator)


def _unary_edits(node: Node) -> Iterator[Edit]:
    operator = text_of(node.child_by_field_name("operator"))
    if operator in {"!", "-", "~"}:
        change = Change.LOGIC if operator == "!" else Change.ARITHMETIC
        yield replaced(change, node, text_of(node.child_by_field_name("argument")))


def _call_edits(node: Node) -> Iterator[Edit]:
    arguments = node.child_by_field_name("arguments")
    is_extreme = _INTEGER_EXTREME.fullmatch(text_of(node.child_by_field_name("function")))
    if arguments is not None and not is_extreme and not _is_check_macro(node):
        yield from argument_edits(arguments.named_children)


def _index_edits(node: Node) -> Iterator[Edit]:
    """`a[i][j]` becomes `a[j][i]`."""
    inner = node.child_by_field_name("argument")
    if inner is None or inner.type != "subscript_expression":
        return
    first, second = inner.child_by_field_name("indices"), node.child_by_field_name("indices")
    if first is not None and second is not None and text_of(first) != text_of(second):
        array = text_of(inner.child_by_field_name("argument"))
        yield replaced(Change.INDEX_ORDER, node, f"{array}{text_of(second)}{text_of(first)}")


def _choice_edits(node: Node) -> Iterator[Edit]:
    first, second = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    if first is not None and second is not None:
        yield swapped(Change.CONDITION, first, second)


def _condition_edits(node: Node) -> Iterator[Edit]:
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if condition is None or body is None:
        return
    value = condition.child_by_field_name("value")
    if value is not None and value.type != "declaration" and condition.named_child_count == 1:
        yield replaced(Change.CONDITION, value, f"!({text_of(value)})")
    is_constexpr = any(child.type == "constexpr" for child in node.children)
    if node.child_by_field_name("alternative") is None and not is_constexpr:
        last = body.named_children[-1] if body.type == "compound_statement" and body.named_children else body
        yield replaced(Change.REMOVED_CHECK if last.type in _LEAVES else Change.DROPPED_STATEMENT, node, ";")


def _statement_edits(node: Node) -> Iterator[Edit]:
    if not node.named_children:
        return
    expression = node.named_children[0]
    if expression.type == "call_expression":
        name = text_of(expression.child_by_field_name("function"))
        yield replaced(Change.REMOVED_CHECK if CHECKS.search(name) else Change.DROPPED_STATEMENT, node, ";")
    elif expression.type in {"assignment_expression", "update_expression", "delete_expression"}:
        yield replaced(Change.DROPPED_STATEMENT, node, ";")


def _is_check_macro(node: Node) -> bool:
    name = text_of(node.child_by_field_name("function")).rpartition("::")[2]
    return bool(_MACRO.fullmatch(name) and CHECKS.search(name))


def _registers(node: Node) -> bool:
    if node.type != "function_definition" or node.child_by_field_name("type") is not None:
        return False
    declarator = node.child_by_field_name("declarator")
    name = text_of(declarator.child_by_field_name("declarator")) if declarator is not None else ""
    return _MACRO.fullmatch(name) is not None


_EDITS: dict[str, Callable[[Node], Iterator[Edit]]] = {
    "binary_expression": _binary_edits,
    "assignment_expression": lambda node: operator_edits(node.child_by_field_name("operator")),
    "unary_expression": _unary_edits,
    "number_literal": number_edits,
    "true": lambda node: iter([replaced(Change.CONSTANT, node, "false")]),
    "false": lambda node: iter([replaced(Change.CONSTANT, node, "true")]),
    "subscript_expression": _index_edits,
    "call_expression": _call_edits,
    "if_statement": _condition_edits,
    "conditional_expression": _choice_edits,
    "expression_statement": _statement_edits,
}
