"""Lines on a terminal: whatever they hold, and however wide and however old it is."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.text import Text

from opwright.report.format import DASH, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

Piece = tuple[str, str]  # text and its style
Pieces = list[Piece]  # a line

_HEAD, _TAIL = 14, 4  # of a long text, so many lines from its beginning and from its end are shown
_LONGEST = 1000  # characters of one line
_ELSEWHERE = "--json and --html have them"
_NARROWEST = 20  # text is not squeezed into fewer columns than this

_ASCII = str.maketrans({DASH: "-", "·": "|", "µ": "u", "±": "~"})  # what opwright's own words hold beside ASCII


def print_lines(lines: Iterable[Pieces], console: Console) -> None:
    """Print lines, with all that would steer the terminal written out.

    What is longer than the terminal is wide is not broken here, so that it can be searched for and pasted.
    """
    for pieces in lines:
        text = Text.assemble(*((_encodable(printable(piece), console.encoding), style) for piece, style in pieces))
        text.rstrip()
        console.print(text, soft_wrap=True)


def paragraph(label: str, text: str, width: int | None) -> Iterator[Pieces]:
    """Text behind a label, its further lines as far in; broken at `width` where there is one."""
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
    """The lines, but for what would push everything else off the screen; the cut says where the rest is."""
    shown = [
        line if len(line) <= _LONGEST else f"{line[:_LONGEST]} [{len(line) - _LONGEST} more characters; {_ELSEWHERE}]"
        for line in lines
    ]
    left_out = len(lines) - _HEAD - _TAIL
    if left_out <= 1:
        return shown
    return [*shown[:_HEAD], f"[{left_out} lines are left out here; {_ELSEWHERE}]", *shown[-_TAIL:]]


def _encodable(text: str, encoding: str) -> str:
    """The text as a terminal without UTF-8 can show it."""
    if encoding.startswith("utf"):
        return text
    return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
