"""Explains the errors of a linker: what is missing or wrong, and which object or library needs it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opwright.toolchain.demangle import demangled
from opwright.toolchain.link_faults import SPEAKER, Fault, Kind, Place, read_faults
from opwright.toolchain.link_hints import hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_LINES = 14
_MOST_EXPLAINED = 3
_MOST_NAMES = 5
# What ends the output of a linker: the compiler that started it, or ninja, reports that it failed.
_END = re.compile(
    r"collect2: error|compilation terminated|clang\S*: error: linker|ninja: build stopped|FAILED: |\[\d+/\d+\] "
)
_STRING = re.compile(r"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> ?>")
# The name of the C++ that nvcc generates from a source.
_OF_NVCC = re.compile(r"tmpxft_\w+-\d+_(.+?)\.cudafe\d+\.cpp")


@dataclass(frozen=True)
class LinkError:
    """What a linker rejected.

    Attributes:
        text: what is wrong and what to do, followed by the linker's own lines.
        first: the number of the linker's first line.
    """

    text: str
    first: int


def link_error(lines: Sequence[str], *, is_authors: bool = True) -> LinkError | None:
    """The errors of a linker among `lines`; None if there are none.

    Args:
        lines: everything that was printed.
        is_authors: whether the objects are compiled from the user's sources; otherwise from opwright's own.
    """
    faults = read_faults(lines)
    first = faults[0].first if faults else _first_other(lines)
    if first is None:
        return None
    hints: dict[str, dict[object, list[Fault]]] = {}
    for fault in faults:
        fault.name = demangled(fault.name)
        key = hint(fault, is_authors=is_authors)
        hints.setdefault(key, {}).setdefault(_group(fault), []).append(fault)
    explained = ["\n".join([*map(_sentence, groups.values()), f"  {text}"]) for text, groups in hints.items()]
    shown = _shown(lines, first)
    hidden = sum(fault.first > shown[-1] for fault in faults)
    more = [f"(and {hidden} more error{'s' * (hidden > 1)})"] if hidden else []
    return LinkError("\n".join([*explained[:_MOST_EXPLAINED], *(lines[at] for at in shown), *more]), first)


def _first_other(lines: Sequence[str]) -> int | None:
    """The number of the first line of a linker's error of another kind."""
    own = (at for at, line in enumerate(lines) if SPEAKER.match(line) and not _END.match(line))
    return next((at for at in own if "warning: " not in lines[at]), None)


def _shown(lines: Sequence[str], first: int) -> list[int]:
    """The numbers of the linker's lines to show."""
    end = next((at for at in range(first, len(lines)) if _END.match(lines[at])), len(lines))
    return [at for at in range(first, end) if lines[at].strip()][:_MOST_LINES]


def _group(fault: Fault) -> object:
    """What errors that are explained in one sentence have in common."""
    if fault.kind in (Kind.UNDEFINED, Kind.DEVICE):
        return fault.kind, fault.library, *(place.archive for place in fault.places[:1])
    return fault.kind, frozenset((place.archive, place.file) for place in fault.places) or fault.name


def _sentence(faults: Sequence[Fault]) -> str:
    kind, name = faults[0].kind, faults[0].name
    names = list(dict.fromkeys(_STRING.sub("std::string", fault.name) for fault in faults))
    places = list(dict.fromkeys(place for fault in faults for place in fault.places))
    where = _joined(_in_words(places))
    if kind in (Kind.UNDEFINED, Kind.DEVICE):
        what = "undefined device function" if kind is Kind.DEVICE else "undefined symbol"
        needed = f", which {where} need{'' if ' and ' in where else 's'}" if places else ""
        if library := faults[0].library:
            needed += f" and {library} defines, but that library is not linked"
        return f"{_counted(names, what)}{needed}{_listed(names)}"
    if kind is Kind.DUPLICATE:
        are = "is" if len(names) == 1 else "are"
        return f"{_counted(names, 'symbol')} {are} defined twice, in {where}{_listed(names)}"
    return {
        Kind.HIDDEN: f"the symbol {name}, which a shared library uses, is hidden in {where}",
        Kind.NOT_PIC: f"{where} was compiled without -fPIC, and cannot become part of a shared library",
        Kind.UNREADABLE: f"{name} is not an object or a library for this machine, or is damaged",
        Kind.NO_LIBRARY: _not_found(name, faults[0].skipped),
        Kind.NO_FILE: f"{name} does not exist",
        Kind.KILLED: f"the linker was killed by signal {name}",
    }[kind]


def _not_found(name: str, skipped: Sequence[str]) -> str:
    files = name[1:] if name.startswith(":") else f"lib{name}.so or lib{name}.a"
    others = f"; {_joined(skipped)} is for another architecture" if skipped else ""
    return f"the library -l{name} was not found: no folder that the linker searched contains {files}{others}"


def _counted(names: Sequence[str], what: str) -> str:
    return f"{what} {names[0]}" if len(names) == 1 else f"{len(names)} {what}s"


def _listed(names: Sequence[str]) -> str:
    """The names in lines of their own, if there are several."""
    if len(names) == 1:
        return ""
    more = [f"and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ":" + "".join(f"\n    {name}" for name in [*names[:_MOST_NAMES], *more])


def _in_words(places: Iterable[Place]) -> list[str]:
    """The places: a source, where known, rather than its object, and the objects of each archive."""
    known = {(place.archive, place.file) for place in places if place.source}
    archives: dict[str, dict[str, None]] = {}
    for place in places:
        if place.source or (place.archive, place.file) not in known:
            archives.setdefault(place.archive, {})[_own_name(place)] = None
    listed = [(list(names), f" in {archive}" if archive else "") for archive, names in archives.items()]
    return [f"{_joined(names)}{where}" for names, where in listed]


def _own_name(place: Place) -> str:
    if ".ltrans" in place.file:
        return "code that was compiled with -flto"
    source = "" if place.archive else _OF_NVCC.sub(r"\1.cu", place.source)
    return source or place.file


def _joined(words: Sequence[str]) -> str:
    if len(words) > _MOST_NAMES:
        words = [*words[:_MOST_NAMES], f"{len(words) - _MOST_NAMES} more"]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
