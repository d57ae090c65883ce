"""A mutant: a source file with one small change."""

from __future__ import annotations

import difflib
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Change(enum.Enum):
    """A kind of change; its value is the name in reports and in `--json`."""

    COMPARISON = "comparison"
    ARITHMETIC = "arithmetic"
    LOGIC = "logic"
    CONDITION = "condition"
    CONSTANT = "constant"
    INDEX_ORDER = "index order"
    SWAPPED_ARGUMENTS = "swapped arguments"
    DROPPED_STATEMENT = "dropped statement"
    REMOVED_CHECK = "removed check"


@dataclass(frozen=True)
class Edit:
    """One change of a text.

    Attributes:
        change: its kind.
        start: the first byte to replace.
        end: the byte after the last one to replace.
        replacement: the new text; it has the same number of lines as the old one.
    """

    change: Change
    start: int
    end: int
    replacement: str

    def applied(self, content: bytes) -> bytes:
        """`content` after the change."""
        return content[: self.start] + self.replacement.encode() + content[self.end :]


@dataclass(frozen=True)
class Mutant:
    """A source file with one change.

    Attributes:
        file: the file.
        line: the line of the change, counted from 1.
        column: its first column, counted from 1.
        edit: the change.
        content: the file's content without the change.
        marked: why its author marked it as equivalent; empty if it is not marked.
    """

    file: Path
    line: int
    column: int
    edit: Edit
    content: bytes
    marked: str = ""

    @property
    def text(self) -> bytes:
        """The file's content with the change."""
        return self.edit.applied(self.content)

    @property
    def name(self) -> str:
        """A short description of the change: `cpu.cpp:31: comparison: < -> <=`."""
        old = self.content[self.edit.start : self.edit.end].decode(errors="replace")
        return (
            f"{self.file.name}:{self.line}: {self.edit.change.value}: {_shown(old)} -> {_shown(self.edit.replacement)}"
        )

    def diff(self) -> str:
        """The change as a unified diff without context."""
        before, after = (text.decode(errors="replace").splitlines() for text in (self.content, self.text))
        lines = difflib.unified_diff(before, after, self.file.name, self.file.name, n=0, lineterm="")
        return "\n".join(lines)


def _shown(text: str) -> str:
    """`text` in one short line."""
    words = " ".join(text.split())
    longest = 60
    return (words if len(words) <= longest else f"{words[:longest]}...") or "nothing"
