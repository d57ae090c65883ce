"""Prints lines on a terminal of any width and encoding, with control characters escaped."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from opwright.report.format import DASH, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Piece = tuple[str, str]  # text and its style
Pieces = list[Piece]  # a line

_HEAD, _TAIL = 14, 4  # the lines of a long text that are shown, from its start and from its end
_LONGEST = 1000  # characters of one line
_ELSEWHERE = "see --json or --html"
_NARROWEST = 20  # columns: text is not wrapped to fewer

_ASCII = str.maketrans({DASH: "-", "·": "|", "µ": "u", "±": "~"})  # the characters beyond ASCII in opwright's own text


def console(*, stderr: bool) -> Console:
    """The console of a standard stream: colour and live displays only on a terminal.

    `FORCE_COLOR`, which notebooks and CI services set, enables colour elsewhere too. It does not enable live displays:
    each of their frames would become a part of the output.
    """
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, force_interactive=stream is not None and stream.isatty())


def print_lines(lines: Iterable[Pieces], console: Console) -> None:
    """Print lines, with control characters escaped.

    A line that is wider than the terminal is not wrapped here, so that it can be searched and copied.
    """
    for pieces in lines:
        text = Text.assemble(*((_encodable(printable(piece), console.encoding), style) for piece, style in pieces))
        text.rstrip()
        console.print(text, soft_wrap=True)


def paragraph(label: str, text: str, width: int | None) -> Iterator[Pieces]:
    """Text after a label, with further lines indented to match; wrapped at `width` unless that is None."""
    lead = label
    for line in _cut(text.splitlines()):
        pieces = [line]
        if width is not None:
            room = max(width - len(label), _NARROWEST)
            pieces = textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
        for piece in pieces:
            yield [(lead, "dim"), (piece, "")]
            lead = " " * len(label)


def _cut(lines: list[str]) -> list[str]:
    """The lines, shortened if there are too many or if they are too long; a marker shows where to find the rest."""
    shown = [
        line if len(line) <= _LONGEST else f"{line[:_LONGEST]} [{len(line) - _LONGEST} more characters; {_ELSEWHERE}]"
        for line in lines
    ]
    omitted = len(lines) - _HEAD - _TAIL
    if omitted <= 1:
        return shown
    return [*shown[:_HEAD], f"[{omitted} lines omitted; {_ELSEWHERE}]", *shown[-_TAIL:]]


def _encodable(text: str, encoding: str) -> str:
    """The text in the characters of the terminal's encoding."""
    if encoding.startswith("utf"):
        return text
    return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
