"""Finds the first real error in the output of a compiler, a linker or CMake."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opwright.toolchain.refusals import refusal, torch_refusal

# file:line:column: error: … (g++, clang++), file(line): error … (nvcc), CMake Error at …
_ERROR = re.compile(r"^(?:[^\s:(][^:(]*[:(]\d+.*?\b(?:fatal )?error\b|CMake Error|ninja: error|\S*nvcc fatal)")
_IGNORED = re.compile(r"^(?:FAILED|ninja: build stopped|collect2: error|make\b)")
# Lines after an error that belong to it: source, caret, notes.
_BELONGS = re.compile(r"^\s+|^\S+:\d+:\d+: note:")
# Lines before an error that belong to it: "In function", "required from", constexpr expansions.
_LEADS_IN = re.compile(r"in .constexpr. expansion|required from|In instantiation|: {3}in ")
# A source line in them, which g++ 14 and newer print.
_EXCERPT = re.compile(r"^ *\d* \| ")
# g++ 14 and newer report such a call before the error that is its cause.
_CONSEQUENCE = re.compile(r"error: call to consteval function")
_MOST_LINES = 14


@dataclass(frozen=True)
class Diagnostic:
    """An error that a tool printed.

    Attributes:
        text: the error with the lines that explain it; empty if there is none.
        is_signature: whether a kernel's signature differs from its schema.
    """

    text: str
    is_signature: bool = False


def first_error(output: str, *, is_authors: bool = True) -> Diagnostic:
    """The first error with the lines that explain it.

    Args:
        output: everything that the tool printed.
        is_authors: whether it processed the user's sources; otherwise opwright's own.
    """
    # Imported only to explain an error: it compiles many patterns.
    from opwright.toolchain.link_errors import link_error

    lines = output.splitlines()
    errors = [at for at, line in enumerate(lines) if _ERROR.search(line) and not _IGNORED.search(line)]
    causes = (at for at in errors if not _CONSEQUENCE.search(lines[at]))
    first = next(causes, errors[0] if errors else len(lines))
    # gold's errors about code with debug information look like those of a compiler.
    if (linked := link_error(lines, is_authors=is_authors)) and linked.first <= first:
        return Diagnostic(linked.text)
    return _with_context(lines, first) if first < len(lines) else Diagnostic("")


def _with_context(lines: list[str], at: int) -> Diagnostic:
    first = at
    while first > 0 and (_LEADS_IN.search(lines[first - 1]) or _EXCERPT.match(lines[first - 1])):
        first -= 1
    leading = [line for line in lines[first:at] if not _EXCERPT.match(line)]
    next_error = next((number for number in range(at + 1, len(lines)) if _ERROR.search(lines[number])), len(lines))
    if refused := refusal(leading, lines[at], lines[at + 1 : next_error]):
        return Diagnostic(refused.text, refused.is_signature)
    leading = leading[-_MOST_LINES:]
    last = at
    while last + 1 < len(lines) and last + 1 - at + len(leading) <= _MOST_LINES and _BELONGS.search(lines[last + 1]):
        last += 1
    if refused := torch_refusal(leading, lines[at], lines[at + 1 : last + 1]):
        return Diagnostic(refused.text)
    more = sum(bool(_ERROR.search(line)) for line in lines[last + 1 :])
    text = "\n".join([*leading, *lines[at : last + 1]])
    return Diagnostic(text + (f"\n(and {more} more error{'s' * (more > 1)})" if more else ""))
