"""Reads, in what g++ prints, why opwright's headers refused a kernel, and says it in one sentence."""

from __future__ import annotations

import re

# The function that refuse.h cannot let be called, and its template arguments, which are the message.
_REFUSED = re.compile(
    r"\b(the_schema_and_the_kernel_differ|the_schema_is_malformed|no_such_operator_is_defined)\(\)"
    r"(?: \[with What = (.*)\])?"
)
_WORD = re.compile(r'(\w+)<(?:[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}|(\d+))>')
_PLACE = re.compile(r'^(\S+:\d+:\d+): +in .constexpr. expansion of .*?\("((?:[^"\\]|\\.)*)"\)')
_SCHEMA = re.compile(r'check_against<[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}')
_SENTENCES = {
    "the_schema_and_the_kernel_differ": "the schema and the kernel differ",
    "the_schema_is_malformed": "the schema is malformed",
    "no_such_operator_is_defined": "no operator of this name is defined",
}


def refusal(leading: list[str], error: str) -> str:
    """The refusal that `error` reports, with the author's own place; an empty string if it reports another error.

    Args:
        leading: the lines before it, from the outermost expansion on.
        error: the line with the error.
    """
    refused = _REFUSED.search(error)
    if refused is None:
        return ""
    words = [f"{name.replace('_', ' ')} {text or number}" for name, text, number in _WORD.findall(refused[2] or "")]
    place = next((found for line in leading if (found := _PLACE.match(line))), None)
    schema = next((found[1] for line in leading if (found := _SCHEMA.search(line))), None)
    where = f"{place[1]}: " if place else ""
    said = f"{where}error: {_SENTENCES[refused[1]]}{': ' if words else ''}{', '.join(words)}"
    if place:
        kernel = next((found[1] for line in leading if (found := re.search(r"kernel<&?([\w:]+)>", line))), None)
        said += f"\n  written: {_unescaped(place[2])}" + (f"\n  kernel:  {kernel}" if kernel else "")
    return said + (f"\n  schema:  {_unescaped(schema)}" if schema else "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
