"""Queries the compiler and the linker for the folders that they search for headers and libraries."""

from __future__ import annotations

import functools
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LISTING = re.compile(
    r'^#include "\.\.\." search starts here:\n((?: .*\n)*)'
    r"#include <\.\.\.> search starts here:\n((?: .*\n)*)End of search list",
    flags=re.MULTILINE,
)
_MISSING = re.compile(r'^ignoring nonexistent directory "(.*)"$', flags=re.MULTILINE)
# Each of them requires a name, in the next word or in the rest of its own.
_FORCED = ("-include", "-imacros", "--pre-include")
# Each makes nvcc start a separate preprocessor.
_ARCHITECTURES = ("-gencode", "-arch", "--gpu-architecture", "--generate-code")


@dataclass(frozen=True)
class HeaderSearch:
    """Where a compiler looks for headers.

    Attributes:
        quoted: the folders for quoted names only, in order, searched after that of the including file.
        bracketed: the folders for all names, in order.
        missing: folders that would be searched if they existed.
        forced: the names of headers that the command line includes.
    """

    quoted: tuple[str, ...]
    bracketed: tuple[str, ...]
    missing: tuple[str, ...]
    forced: tuple[str, ...]


@functools.lru_cache(maxsize=8)
def header_search(command: tuple[str, ...], work: Path, *, cuda: bool) -> HeaderSearch:
    """The header search of the compiler with the command line `command`.

    Args:
        command: the command line, without input and output.
        work: the folder that it runs in, which is new for each build, so that results are cached for only one build.
        cuda: whether the compiler is nvcc.

    Raises:
        BuildError: the compiler does not report it.
    """
    forced, rest = _without_forced(command)
    if cuda:
        asking = [*(word for word in rest if not word.startswith(_ARCHITECTURES)), "-Xcompiler=-v", "-E", "-x", "cu"]
    else:
        asking = [*rest, "-v", "-E", "-x", "c++"]
    printed = run([*asking, "/dev/null"], cwd=work, env={"LC_ALL": "C"}).output
    listings = _LISTING.findall(printed)
    quoted, bracketed = listings[-1] if listings else ("", "")
    missing = [folder for folder in _MISSING.findall(printed) if folder.startswith("/")]
    return HeaderSearch(_lines(quoted), _lines(bracketed), tuple(missing), tuple(forced))


def library_search(linker: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The folders that are searched for libraries, in order: those of `-L`, and the compiler's own.

    Args:
        linker: the program that links, with its first words.
        flags: what follows the objects.

    Raises:
        BuildError: the compiler does not report them.
    """
    printed = run([*linker, os.devnull, *flags, "-###"], env={"LC_ALL": "C"}).output
    last = [line for line in printed.splitlines() if " -L" in line or ' "-L' in line]
    words = shlex.split(last[-1]) if last else []
    return [str(Path.cwd() / folder) for folder in _values(words, "-L")]


def _without_forced(command: Sequence[str]) -> tuple[list[str], list[str]]:
    forced, rest = [], []
    words = iter(command)
    for word in words:
        if word in _FORCED:
            forced.append(next(words, ""))
        else:
            rest.append(word)
    return forced, rest


def _values(words: Sequence[str], flag: str) -> Iterator[str]:
    """The values of `flag` in `words`, in the same word or in the next one."""
    remaining = iter(words)
    for word in remaining:
        if word == flag:
            yield next(remaining, "")
        elif word.startswith(flag):
            yield word[len(flag) :]


def _lines(listed: str) -> tuple[str, ...]:
    # A relative folder is inside the build folder, which is new and empty.
    return tuple(line[1:] for line in listed.splitlines() if line.startswith(" /"))
