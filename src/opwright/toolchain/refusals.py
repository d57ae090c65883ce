"""Finds in g++'s output why opwright's headers rejected a kernel, and states it in one sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The functions that refuse.h calls to make the compiler fail; their template arguments are the message.
_REFUSED = re.compile(
    r"\b(the_schema_and_the_kernel_differ|the_schema_is_malformed|no_such_operator_is_defined)\(\)"
    r"(?: \[with What = (.*)\])?"
)
_WORD = re.compile(r'(\w+)<(?:[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}|(\d+))>')
_PLACE = re.compile(r'^(\S+:\d+:\d+): +in .constexpr. expansion of .*?\("((?:[^"\\]|\\.)*)"\)')
_SCHEMA = re.compile(r'check_against<[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}')
_SIGNATURE = "the_schema_and_the_kernel_differ"
_SENTENCES = {
    _SIGNATURE: "the schema and the kernel differ",
    "the_schema_is_malformed": "the schema is malformed",
    "no_such_operator_is_defined": "no operator of this name is defined",
}


@dataclass(frozen=True)
class Refusal:
    """Why opwright's headers rejected a kernel.

    Attributes:
        text: the reason in one sentence, with its place in the author's source.
        is_signature: whether the kernel's signature differs from its schema.
    """

    text: str
    is_signature: bool


def refusal(leading: list[str], error: str) -> Refusal | None:
    """The refusal that `error` reports; None if it reports another error.

    Args:
        leading: the lines before the error, from the outermost expansion on.
        error: the line with the error.
    """
    refused = _REFUSED.search(error)
    if refused is None:
        return None
    words = [f"{name.replace('_', ' ')} {value or number}" for name, value, number in _WORD.findall(refused[2] or "")]
    place = next((found for line in leading if (found := _PLACE.match(line))), None)
    schema = next((found[1] for line in leading if (found := _SCHEMA.search(line))), None)
    where = f"{place[1]}: " if place else ""
    text = f"{where}error: {_SENTENCES[refused[1]]}{': ' if words else ''}{', '.join(words)}"
    if place:
        kernel = next((found[1] for line in leading if (found := re.search(r"kernel<&?([\w:]+)>", line))), None)
        text += f"\n  written: {_unescaped(place[2])}" + (f"\n  kernel:  {kernel}" if kernel else "")
    text += f"\n  schema:  {_unescaped(schema)}" if schema else ""
    return Refusal(text, is_signature=refused[1] == _SIGNATURE)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
