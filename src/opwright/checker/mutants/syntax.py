"""Shared by the languages of sources: syntax trees, tables of replacements, and the author's marks."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from opwright.checker.mutants.mutant import Change, Edit, Mutant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tree_sitter import Node

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "&=": "|=", "|=": "&="}
# The names of functions and macros that reject bad arguments.
CHECKS = re.compile(r"check|assert|require|expect|verify|validate|enforce", re.IGNORECASE)

_MARK = re.compile(rb"(?://|/\*|#)\s*opwright: equivalent(?:\s*\[(?P<replacement>[^\]]*)\])?:\s*(?P<reason>[^\n]*)")
# Numbers with a point or an exponent are multiplied by this factor, which is far above rounding.
_FACTOR = 1.01
# Arguments of these types cannot be swapped with arguments of other types.
_UNLIKE = frozenset(
    {
        *("string_literal", "string", "lambda_expression", "lambda", "initializer_list", "keyword_argument", "comment"),
        "list_splat",
    }
)
_INTEGER = re.compile(r"(?P<digits>\d[\d']*)(?P<suffix>[uUlLzZ]*)")
_FLOAT = re.compile(r"(?P<digits>(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?)(?P<suffix>[fFlL]?)")


def text_of(node: Node | None) -> str:
    """The text of a node; empty if there is none."""
    return "" if node is None or node.text is None else node.text.decode(errors="replace")


def replaced(change: Change, node: Node, replacement: str) -> Edit:
    """The edit that replaces a node; it keeps the number of lines, so that line numbers do not change."""
    lines = text_of(node).count("\n") - replacement.count("\n")
    return Edit(change, node.start_byte, node.end_byte, replacement + "\n" * max(lines, 0))


def swapped(change: Change, first: Node, second: Node) -> Edit:
    """The edit that swaps two nodes; `first` precedes `second` in the text."""
    parent = first.parent
    whole = b"" if parent is None or parent.text is None else parent.text
    offset = 0 if parent is None else parent.start_byte
    between = whole[first.end_byte - offset : second.start_byte - offset].decode(errors="replace")
    return Edit(change, first.start_byte, second.end_byte, text_of(second) + between + text_of(first))


def operator_edits(node: Node | None) -> Iterator[Edit]:
    """The edit of a binary operator, or of an augmented assignment."""
    text = text_of(node)
    tables = ((COMPARISONS, Change.COMPARISON), (ARITHMETIC, Change.ARITHMETIC), (ASSIGNMENTS, Change.ARITHMETIC))
    for table, change in tables:
        if node is not None and text in table:
            yield replaced(change, node, table[text])


def number_edits(node: Node) -> Iterator[Edit]:
    """The edits of a number: an integer plus and minus one, or a slightly larger floating-point number."""
    text = text_of(node)
    if found := _INTEGER.fullmatch(text):
        value = int(found["digits"].replace("'", ""))
        if not (found["digits"].startswith("0") and value):  # octal in C++
            for other in (value + 1, value - 1) if value else (1,):
                yield replaced(Change.CONSTANT, node, f"{other}{found['suffix']}")
    elif found := _FLOAT.fullmatch(text):
        value_with_point = float(found["digits"])
        other_with_point = float(f"{value_with_point * _FACTOR:.6g}") if value_with_point else 1.0
        yield replaced(Change.CONSTANT, node, f"{other_with_point!r}{found['suffix']}")


def argument_edits(arguments: list[Node]) -> Iterator[Edit]:
    """The edits that swap two adjacent arguments, unless a compiler is certain to reject the swap."""
    for first, second in itertools.pairwise(arguments):
        kinds = {first.type, second.type}
        if text_of(first) != text_of(second) and (len(kinds) == 1 or not kinds & _UNLIKE):
            yield swapped(Change.SWAPPED_ARGUMENTS, first, second)


def mutants_of(file: Path, content: bytes, edits: Iterable[Edit]) -> list[Mutant]:
    """The mutants that `edits` produce from a file, in the order of the text, without duplicates."""
    marks = _marks(content)
    found = []
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end, edit.replacement)):
        before = content[: edit.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        found.append(Mutant(file, line, column, edit, content, _mark(marks, line, edit)))
    return found


def _marks(content: bytes) -> dict[int, list[tuple[str | None, str]]]:
    """The marks of each line: the replacement that a mark applies to, or None for all, and the reason."""
    marks: dict[int, list[tuple[str | None, str]]] = {}
    waiting: list[tuple[str | None, str]] = []
    for number, line in enumerate(content.splitlines(), 1):
        is_code = bool(line.strip()) and not line.strip().startswith((b"//", b"/*", b"#"))
        if found := _MARK.search(line):
            replacement = found["replacement"]
            reason = found["reason"].decode(errors="replace").removesuffix("*/").strip()
            waiting.append((None if replacement is None else replacement.decode(), reason))
        # A comment on a separate line applies to the next line of code.
        if is_code and waiting:
            marks[number], waiting = waiting, []
    return marks


def _mark(marks: dict[int, list[tuple[str | None, str]]], line: int, edit: Edit) -> str:
    for replacement, reason in marks.get(line, ()):
        if replacement is None or replacement == edit.replacement.strip():
            return reason or "no reason given"
    return ""
