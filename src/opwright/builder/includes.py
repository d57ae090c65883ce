"""Finds the names that sources and headers include: other headers, and files that assembly code embeds."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NAME = rb'(?:"([^"\n]+)"|<([^>\n]+)>)'
# Two patterns, because searching for a pattern that starts with a constant is fast.
_INCLUDES = re.compile(rb"#[ \t]*(include|include_next|import|embed)\b[ \t]*" + _NAME)
_QUESTIONS = re.compile(rb"__has_(include|include_next|embed)[ \t]*\([ \t]*" + _NAME)
_ASSEMBLED = re.compile(rb"\.incbin\b[ \t]*(?:\\?\"([^\"\\\n]+)\\?\")?")


@dataclass(frozen=True)
class Asked:
    """A name that a file includes.

    Attributes:
        name: the text between the quotes or the brackets.
        beside: the folder of the including file, for a name in quotes; None for one in brackets.
        is_next: whether the search starts after the folder in which the file itself was found.
        is_question: whether it only tests if the file exists, as `__has_include` does.
    """

    name: str
    beside: str | None
    is_next: bool = False
    is_question: bool = False


def asked_for(text: bytes, path: Path) -> set[Asked]:
    """The names that the file at `path`, with the content `text`, includes or tests for, except names in macros."""
    folder = str(path).rpartition("/")[0]
    return {
        Asked(os.fsdecode(quoted or bracketed), folder if quoted else None, word == b"include_next", is_question)
        for pattern, is_question in ((_INCLUDES, False), (_QUESTIONS, True))
        for word, quoted, bracketed in pattern.findall(text)
    }


def assembled(text: bytes) -> list[str | None]:
    """The names of the files that assembly code in `text` embeds; None for a name that is not a literal."""
    return [os.fsdecode(name) if name else None for name in _ASSEMBLED.findall(text)]
