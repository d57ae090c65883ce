"""Precompiles the opwright headers that a source includes, for g++.

Precompiling takes about as long as compiling the headers once, and about 100 MB of disk space. It therefore runs in
parallel with the first build that leaves a processor idle, for the benefit of later builds, such as the next edit's.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opwright.builder.abi import without_comments
from opwright.builder.depfile import read_depfile
from opwright.builder.ninja import Unit
from opwright.builder.provenance import provenance
from opwright.builder.shadows import header_lookups
from opwright.cache.file_state import state_of
from opwright.toolchain.compiler import is_gcc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from opwright.builder.reads import Watch
    from opwright.builder.recipes import Recipes
    from opwright.cache.cache import Cache

# Headers that do not depend on macros that a source defines before it includes them.
_OURS = re.compile(r"opwright/(?!common/|block\.h)[\w/]+\.h|torch/(?:csrc/stable|headeronly)/[\w/.]+\.h")
# Directives, except include guards.
_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(?!pragma[ \t]+once\b|endif\b)(\w+)[ \t]*(<[^>\n]*>|"[^"\n]*"|)', re.MULTILINE)
_GUARD = re.compile(r"\A\s*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\n\s*#[ \t]*define[ \t]+\1\b[^\n]*\n")
# The name of the precompiled header, in its own folder.
PRECOMPILED = "headers.h"
_MADE = f"{PRECOMPILED}.gch"


@dataclass(frozen=True)
class Precompiled:
    """The precompiled headers of a unit.

    Attributes:
        key: their key in the cache.
        names: the headers, as sources include them.
        command: the unit's command line without the author's own folders and headers.
    """

    key: str
    names: tuple[str, ...]
    command: tuple[str, ...]

    def used_by(self, unit: Unit, made: Path) -> Unit:
        """`unit` with a command line that reads the precompiled header `made`."""
        program, *words = unit.command
        return replace(unit, quick=(program, "-include", str(made.with_suffix("")), *words))

    def beside(self, work: Path) -> str:
        """The shell command line that precompiles them in the folder `work`."""
        text = "".join(f"#include <{name}>\n" for name in self.names)
        (work / PRECOMPILED).write_text(text)
        return shlex.join(
            [*self.command, "-x", "c++-header", "-MD", "-MF", f"{PRECOMPILED}.d", PRECOMPILED, "-o", _MADE]
        )

    def keep(self, work: Path, cache: Cache, watch: Watch) -> None:
        """Move them to the cache from `work`, where they were compiled after `watch` started, unless that failed."""
        if not ((work / _MADE).is_file() and (work / f"{PRECOMPILED}.d").is_file()):
            return
        listed = read_depfile(work / f"{PRECOMPILED}.d", work)
        lookups = header_lookups(Unit(work / PRECOMPILED, self.command), listed, work)
        read = {str(path): state_of(path) for path in (*listed, *lookups.further) if path != work / PRECOMPILED}
        if lookups.is_complete and watch.changed(read) is None and watch.appeared(lookups.unread) is None:
            about = provenance(", ".join(self.names), "")
            cache.keep_precompiled(self.key, work / _MADE, work / PRECOMPILED, read, lookups.absent, about)


def precompiled_for(unit: Unit, recipes: Recipes, include_dirs: Sequence[Path]) -> Precompiled | None:
    """The headers that can be precompiled for `unit`; None if there are none, or if the compiler is not g++."""
    if not is_gcc(unit.command) or unit.source.suffix == ".cu":
        return None
    names = tuple(dict.fromkeys(_leading(unit.source, include_dirs, set())))
    command = tuple(_without_own(unit.command, include_dirs))
    return Precompiled(recipes.headers_key(names, command), names, command) if names else None


def is_unusable(output: str) -> bool:
    """Whether the compiler reported that it cannot read precompiled headers."""
    return _MADE in output or "PCH" in output


def _leading(file: Path, include_dirs: Sequence[Path], seen: set[Path]) -> Iterator[str]:
    """The opwright headers that `file` includes before anything that could change their content."""
    seen.add(file)
    for directive, rest in _DIRECTIVE.findall(_GUARD.sub("", without_comments(file), count=1)):
        if directive != "include":
            return
        name = rest.strip('<">')
        own = next((path for folder in (file.parent, *include_dirs) if (path := folder / name).is_file()), None)
        if own is None and _OURS.fullmatch(name):
            yield name
        elif own is not None and own.resolve() not in seen:
            yield from _leading(own.resolve(), include_dirs, seen)
            if _changes_macros(own):
                return


def _changes_macros(header: Path) -> bool:
    """Whether the author's `header` contains directives other than includes."""
    found = _DIRECTIVE.findall(_GUARD.sub("", without_comments(header), count=1))
    return any(directive != "include" for directive, _ in found)


def _without_own(command: Iterable[str], include_dirs: Sequence[Path]) -> list[str]:
    own = {f"-I{folder}" for folder in include_dirs}
    words = [word for word in command if word not in own]
    while "-include" in words:
        at = words.index("-include")
        del words[at : at + 2]
    return words
