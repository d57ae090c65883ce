"""Reads the errors of a linker: GNU ld, gold, lld, mold, or nvlink, which links device code."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Kind(enum.Enum):
    """What is wrong, with the patterns of the lines that report it, without the name of the linker."""

    UNDEFINED = (
        r"(?P<where>.*?): ?(?:error: )?undefined reference to (?:symbol )?[`'](?P<name>.+?)'",
        r"(?P<where>.*?): ?more undefined references to [`'](?P<name>.+?)' follow",
        r"undefined(?: \w+)? symbol: (?P<name>.+)",
        r"undefined reference due to --no-allow-shlib-undefined: (?P<name>.+)",
    )
    DEVICE = (
        r"Undefined reference to '(?P<name>.+?)' in '(?P<where>.+?)'.*",
        r"Unresolved extern function '(?P<name>.+)'",
    )
    DUPLICATE = (
        r"(?P<where>.+?): multiple definition of [`'](?P<name>.+?)'(?:; (?P<other>.+): first defined here)?",
        r"Multiple definition of '(?P<name>.+?)' in '(?P<where>.+?)', first defined in '(?P<other>.+?)'.*",
        r"duplicate symbol: (?P<where>\S+): (?P<other>\S+): (?P<name>.+)",
        r"duplicate symbol: (?P<name>.+)",
    )
    HIDDEN = (
        r"(?:.+: )?hidden symbol [`'](?P<name>.+)' in (?P<where>.+) is referenced by DSO",
        r"non-exported symbol '(?P<name>.+)' in '(?P<where>.+)' is referenced by DSO .+",
    )
    NOT_PIC = (r"(?P<where>.*?)\b(?:relocation|requires dynamic)\b.*(?:recompile with -fPI[CE]|used with -shared)",)
    UNREADABLE = (
        r"(?:cannot find )?(?P<name>[^\s:]+): (?:.*: )?(?:file format not recognized|file in wrong format).*",
        r"(?P<name>[^\s:]+): (?:.*: )?(?:malformed archive|file truncated|file too short|file is empty)",
        r"(?P<name>[^\s:]+): (?:not an object or archive|unsupported ELF machine|incompatible file type).*",
        r"(?P<name>[^\s:]+): unknown file type",
        r"(?P<name>[^\s:]+): .*truncated or malformed archive.*",
        r"(?P<name>[^\s:]+) is incompatible with \S+",
        r"(?P<name>[^\s:]+):\d+: unexpected EOF",  # lld takes a file of text for a linker script
    )
    NO_LIBRARY = (
        r"(?:cannot find|unable to find library) -l(?P<name>\S+?)(?:: No such file or directory)?",
        r"library not found: (?P<name>\S+)",
    )
    NO_FILE = (
        r"cannot (?:find|open) (?!output)(?P<name>[^:']+)(?:: No such file or directory)?",
        r"no such file or directory: '(?P<name>.+)'",
    )
    KILLED = (r"ld terminated with signal (?P<name>\d+).*",)


_PATTERNS = [(kind, re.compile(pattern)) for kind in Kind for pattern in kind.value]
# What a linker, or the compiler that starts it, puts before its messages; GNU ld and gold omit it for some symbols.
SPEAKER = re.compile(
    r"(?:\S*\bld(?:\.(?:bfd|gold|lld|mold))?: ?|mold: |nvlink (?=error)|ptxas (?=fatal)|(?:collect2|\S*clang\S*): )"
    r"(?:(?:fatal error|error|fatal) *: )?"
)
_OF_SYMBOLS = (Kind.UNDEFINED, Kind.DUPLICATE)
_WITHOUT_SPEAKER = ("undefined reference", "multiple definition", ">>> ")
# GNU ld prints the object once, before the errors of a function.
_IN_FUNCTION = re.compile(r"(?P<where>.+): in function [`'].+':")
_OBJECT = re.compile(
    r"(?P<archive>[^:()]+\.a)\((?P<member>[^()]+)\)|(?P<file>[^:()]+?\.(?:l?o|obj|so[.\d]*))(?=[:\s]|$)"
)
_SOURCE = re.compile(r"(?:^|[:/ ])([^:/()<>\s]+\.(?:c|cc|cpp|cxx|c\+\+|cu)(?::\d+)?)(?=[:\s]|$)")
# lld and mold list the places after the error, the source before the object, and the archive last.
_LISTED = re.compile(r">>> *(?:referenced by |defined at )?(?P<where>\S.*?)(?: in archive (?P<archive>.+))?")
# mold 1 omits line breaks.
_NEXT_LISTED = re.compile(r"(?<=\S)(?=>>> referenced )")
_PREVIOUS = re.compile(r"(?P<where>.+): previous definition here")
_NOT_LINKED = re.compile(r"(?P<where>.+): error adding symbols: DSO missing from command line")
_SKIPPED = re.compile(r"skipping incompatible (\S+) when .*|warning: (\S+): skipping incompatible file.*")
# A library that a shared library requires.
_NOT_FOUND = re.compile(r"warning: \S+, needed by .*, not found .*")


@dataclass(frozen=True)
class Place:
    """An object or a shared library.

    Attributes:
        file: its path, or its name in an archive.
        archive: the archive; empty if it is in none.
        source: the name of its source, with the line if known; empty if unknown.
    """

    file: str
    archive: str = ""
    source: str = ""


@dataclass
class Fault:
    """An error of the linker.

    Attributes:
        kind: what is wrong.
        name: the symbol, the library without `-l`, or the file; the signal that killed the linker.
        first: the number of the first line that belongs to it.
        places: where the symbol is used or defined.
        library: a library that defines the symbol but is not linked; empty if the linker names none.
        skipped: libraries for other architectures that were found instead of the missing one.
    """

    kind: Kind
    name: str
    first: int = 0
    places: list[Place] = field(default_factory=list)
    library: str = ""
    skipped: list[str] = field(default_factory=list)


def read_faults(lines: Iterable[str]) -> list[Fault]:
    """The errors of the linker among `lines`, in order."""
    faults: list[Fault] = []
    current: Place | None = None
    first: int | None = None
    source = ""
    skipped: list[str] = []
    for number, text, named in _spoken(lines):
        if text.startswith(">>>") and faults:
            for part in _NEXT_LISTED.split(text):
                source = _add_listed(faults[-1], part, source)
        elif found := _IN_FUNCTION.fullmatch(text):
            current, first = _place(found["where"]), number
        elif found := _SKIPPED.fullmatch(text):
            skipped.append(found[1] or found[2])
            first = number if first is None else first
        elif _NOT_FOUND.fullmatch(text):
            first = number if first is None else first
        elif faults and (found := _PREVIOUS.fullmatch(text)):
            _add(faults[-1], _place(found["where"]))
        elif faults and (found := _NOT_LINKED.fullmatch(text)):
            faults[-1].library = found["where"]
        elif fault := _fault(text, current, named=named):
            fault.first = number if first is None else first
            fault.skipped = skipped if fault.kind is Kind.NO_LIBRARY else []
            faults.append(fault)
            first, skipped, source = None, [], ""
    return faults


def _spoken(lines: Iterable[str]) -> Iterator[tuple[int, str, bool]]:
    """The number of each line that may be a linker's, its text without the linker's name, and whether it had one."""
    # The output of a compiler can have thousands of long lines, for which all patterns would take seconds.
    for number, line in enumerate(lines):
        speaker = SPEAKER.match(line)
        if speaker or any(word in line for word in _WITHOUT_SPEAKER):
            yield number, line[speaker.end() :] if speaker else line, speaker is not None


def _fault(text: str, current: Place | None, *, named: bool) -> Fault | None:
    """The error in one line, without the linker's name; `named` tells whether the line began with it."""
    for kind, pattern in _PATTERNS:
        found = pattern.fullmatch(text) if named or kind in _OF_SYMBOLS else None
        if found is None:
            continue
        groups = found.groupdict("")
        fault = Fault(kind, groups.get("name", ""))
        if where := groups.get("where"):
            _add(fault, _place(where) or _with_source(current, where))
        _add(fault, _place(groups.get("other", "")))
        return fault
    return None


def _add_listed(fault: Fault, line: str, source: str) -> str:
    """Add the place in a line of a list, or return the source in it, which belongs to the next line."""
    found = _LISTED.fullmatch(line)
    place = found and _place(found["where"])
    if found is None or place is None:
        named = _SOURCE.search(line)
        return named[1] if named else ""
    if not found["where"].startswith("defined in "):
        _add(fault, Place(place.file, found["archive"] or place.archive, source or place.source))
    return ""


def _add(fault: Fault, place: Place | None) -> None:
    if place is not None and place not in fault.places:
        fault.places.append(place)


def _place(text: str) -> Place | None:
    found = _OBJECT.match(text)
    if found is None:
        return None
    source = _SOURCE.search(text, found.end())
    return Place(found["file"] or found["member"], found["archive"] or "", source[1] if source else "")


def _with_source(place: Place | None, text: str) -> Place | None:
    """`place` with the source that GNU ld prints in front of an error in a function; gold prints only the source."""
    source = _SOURCE.search(text)
    if source is None:
        return place
    return Place(place.file, place.archive, source[1]) if place else Place("", "", source[1])
