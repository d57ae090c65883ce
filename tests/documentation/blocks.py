"""The code blocks of a Markdown page, and the directives between them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from pathlib import Path

# What a fence's info string may hold after the language. CONTRIBUTING.md describes each.
ATTRIBUTES = frozenset({"file", "excerpt", "apply", "exit", "raises", "needs", "skip", "slow"})
# Languages whose blocks are not code.
TEXT = frozenset({"text", "output"})
_DIRECTIVE = re.compile(r"<!--\s*(setup:|fresh folder|clone)\s*(.*?)\s*-->", flags=re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced code block, or a directive in an HTML comment."""

    page: Path
    line: int
    language: str
    text: str
    attributes: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_directive(self) -> bool:
        """Whether this is an HTML comment, which readers do not see."""
        return self.language.startswith("<!--")

    @property
    def use(self) -> str:
        """What the runner does with the block: `run`, `compare`, `text` or `skip`."""
        if self.language in TEXT:
            return "text"
        if "skip" in self.attributes:
            return "skip"
        return "compare" if "excerpt" in self.attributes else "run"


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks and directives of a page, in order.

    Raises:
        ValueError: a fence has no language, or an attribute that the runner does not know.
    """
    found = []
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        line = (token.map or [0])[0] + 1
        if token.type == "fence":
            language, attributes = _info(token.info, f"{page}:{line}")
            found.append(Block(page=page, line=line, language=language, text=token.content, attributes=attributes))
        elif token.type == "html_block":
            for name, argument in _DIRECTIVE.findall(token.content):
                found.append(Block(page=page, line=line, language=f"<!-- {name}", text=argument))
    return found


def _info(info: str, where: str) -> tuple[str, dict[str, str]]:
    language, *words = shlex.split(info) or [""]
    attributes = dict(word.partition("=")[::2] for word in words)
    if not language:
        msg = f"{where}: the code block has no language; write one after the backticks, `text` for what is not code"
        raise ValueError(msg)
    if unknown := sorted(attributes.keys() - ATTRIBUTES):
        msg = f"{where}: unknown attribute {', '.join(unknown)}; expected one of {', '.join(sorted(ATTRIBUTES))}"
        raise ValueError(msg)
    return language, attributes


@dataclass(frozen=True)
class Command:
    """A command of a console block, and the output that the page shows."""

    text: str
    output: str


def commands_of(block: Block) -> list[Command]:
    """Return the commands of a console block.

    Raises:
        ValueError: the block begins with output.
    """
    commands: list[tuple[list[str], list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(([line[2:]], []))
        elif not commands:
            msg = f"{block}: the console block begins with {line!r}; expected a command, after `$ `"
            raise ValueError(msg)
        elif commands[-1][0][-1].endswith("\\") and not commands[-1][1]:
            commands[-1][0].append(line)
        else:
            commands[-1][1].append(line)
    return [Command("\n".join(lines), "\n".join(output).strip("\n")) for lines, output in commands]
