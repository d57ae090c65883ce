"""Reads what sources and headers ask for by name: other headers, and files that assembly code takes in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NAME = rb'(?:"([^"\n]+)"|<([^>\n]+)>)'
# Two patterns, because each of them begins with a constant, which makes the search for it fast.
_INCLUDES = re.compile(rb"#[ \t]*(include|include_next|import|embed)\b[ \t]*" + _NAME)
_QUESTIONS = re.compile(rb"__has_(include|include_next|embed)[ \t]*\([ \t]*" + _NAME)
_ASSEMBLED = re.compile(rb"\.incbin\b[ \t]*(?:\\?\"([^\"\\\n]+)\\?\")?")


@dataclass(frozen=True)
class Asked:
    """A name that a file asks for.

    Attributes:
        name: what is between the quotes or the brackets.
        beside: the folder of the file that asks, for a name in quotes; None for one in brackets.
        is_next: whether the search begins behind the folder that the file itself was found in.
        is_question: whether it only asks if there is such a file.
    """

    name: str
    beside: str | None
    is_next: bool = False
    is_question: bool = False


def asked_for(text: bytes, path: Path) -> set[Asked]:
    """What the file at `path`, which holds `text`, includes or asks for, wherever in it; not names that are macros."""
    folder = str(path).rpartition("/")[0]
    return {
        Asked(os.fsdecode(quoted or bracketed), folder if quoted else None, word == b"include_next", is_question)
        for pattern, is_question in ((_INCLUDES, False), (_QUESTIONS, True))
        for word, quoted, bracketed in pattern.findall(text)
    }


def assembled(text: bytes) -> list[str | None]:
    """The names of the files that assembly code in `text` takes in; None for one that is not written out."""
    return [os.fsdecode(name) if name else None for name in _ASSEMBLED.findall(text)]
