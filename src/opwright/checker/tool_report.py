"""Parses the output of compute-sanitizer's tools: one report for each thread or place that shows a fault."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opwright.toolchain.demangle import demangled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PREFIX = b"========="
# A place in a kernel: `at _Z4workPf+0x70 in /ops/mine/cuda.cu:53`. The name of the file is missing without line
# information, and releases before 2024 write `at 0x70 in /ops/mine/cuda.cu:53:_Z4workPf`.
_PLACE = re.compile(r"(?:\bat|Device Frame:) ?(\S.*?)\+0x[0-9a-f]+(?: in (\S.*?):(\d+))?(?=\s|$)")
_OLD_PLACE = re.compile(r"\bat 0x[0-9a-f]+ in (?:(\S+?):(\d+):)?(\S+)")
_ACCESS = re.compile(r"\b(Read|Write|Atomic) (?:access|Thread)", re.IGNORECASE)
_THREAD = re.compile(r"\bby thread (\(\d+,\d+,\d+\))")
_BLOCK = re.compile(r"\bin block (\(\d+,\d+,\d+\))")
_HOST_FRAME = re.compile(r"^Host Frame:.*\[0x[0-9a-f]+\](?: in (\S.*))?$")
_API_ERROR = re.compile(r"^Program hit ")
_RACE = re.compile(r"\bRace reported between\b|\bhazard detected\b")
# The tool reports that it could not do its work. A missing exit code only means that CUDA was not used.
_TROUBLE = re.compile(r"^Internal Sanitizer|^(?:Warning|Error): (?!couldn't find exit code)|errors were skipped")
_LIBRARIES_OF_CUDA = re.compile(r"(?:^|/)lib(?:cuda|cudart)[.-]")
# The headline of a race includes its first place.
_PLACE_IN_HEADLINE = re.compile(r"\s*\b(?:\w+ access at\b|at __\w+__ 0x).*$")
_LONGEST = 40  # lines of a report to keep


@dataclass(frozen=True)
class Place:
    """A place in a kernel.

    Attributes:
        function: the mangled name of the kernel, or of a function that it calls.
        file: the path of the source; empty if it is unknown.
        line: the line in it.
    """

    function: str
    file: str = ""
    line: int = 0

    def is_below(self, root: Path) -> bool:
        """Whether its source is in the folder `root`."""
        return self.file.startswith(f"{root}/")

    def text(self, root: Path) -> str:
        """The place as `cuda.cu:53`, relative to the folder `root` if it is inside; the function if unknown."""
        return f"{self.file.removeprefix(f'{root}/')}:{self.line}" if self.file else demangled(self.function)


@dataclass(frozen=True)
class ToolReport:
    """One report of a tool.

    Attributes:
        headline: the fault, without the place.
        places: the place of the fault, or all places that take part in a race.
        frames: the call stack on the GPU, the kernel last.
        thread: the thread, as `(31,0,0)`; empty if it is unknown.
        block: the block of the thread.
        modules: the shared objects on the stack of the host, the innermost first.
        text: the whole report.
        offset: the position of the report in the output, in bytes.
    """

    headline: str
    places: tuple[Place, ...]
    frames: tuple[Place, ...]
    thread: str
    block: str
    modules: tuple[str, ...]
    text: str
    offset: int

    @property
    def kernel(self) -> str:
        """The mangled name of the kernel; empty if it is unknown."""
        if self.frames:
            return self.frames[-1].function
        return self.places[0].function if self.places else ""

    @property
    def is_api_error(self) -> bool:
        """Whether a CUDA call failed, rather than a kernel."""
        return _API_ERROR.match(self.headline) is not None

    @property
    def is_race(self) -> bool:
        """Whether threads race on shared memory."""
        return _RACE.search(self.headline) is not None

    @property
    def key(self) -> tuple[str, ...]:
        """A key that it shares with the reports of other threads about the same fault."""
        where = [f"{place.function} {place.file}:{place.line}" for place in self.places]
        return (re.sub(r"\d", "", self.headline), *sorted(where), self.kernel)

    @property
    def caller(self) -> str:
        """The file name of the shared object that made the CUDA call; empty if it is unknown."""
        outer = (module.rpartition("/")[2] for module in self.modules if not _LIBRARIES_OF_CUDA.search(module))
        return next(outer, "")


def reports(content: bytes) -> list[ToolReport]:
    """The reports in the output of a tool, in order."""
    return [_report(lines, offset) for offset, lines in _records(content) if _is_report(lines)]


def troubles(content: bytes) -> list[str]:
    """The messages of a tool about itself: a GPU that it does not support, launches that it did not check."""
    found = [lines[0] for _, lines in _records(content) if _TROUBLE.search(lines[0]) and not _is_report(lines)]
    return list(dict.fromkeys(map(demangled, found)))


def distinct(found: Iterable[ToolReport]) -> list[ToolReport]:
    """The first report of each fault."""
    firsts: dict[tuple[str, ...], ToolReport] = {}
    for report in found:
        firsts.setdefault(report.key, report)
    return list(firsts.values())


def shown(report: ToolReport, root: Path) -> str:
    """A report in one line: the fault, its place, the kernel and the thread."""
    if report.is_race:
        accesses = _ACCESS.findall(report.text)
        sides = [
            f"{kind.lower()} at {place.text(root)}" for kind, place in zip(accesses, report.places, strict=False)
        ] or [place.text(root) for place in report.places]
        what = f"{report.headline} {' and '.join(dict.fromkeys(sides))}"
    else:
        own = (place for place in (*report.places, *report.frames) if place.is_below(root))
        place = next(own, report.places[0] if report.places else None)
        what = report.headline if place is None else f"{report.headline} at {place.text(root)}"
    if report.kernel:
        what += f", in the kernel {demangled(report.kernel)}"
    who = [f"thread {report.thread}" if report.thread else "", f"block {report.block}" if report.block else ""]
    return ", ".join([what, " of ".join(filter(None, who))]) if any(who) else what


def _records(content: bytes) -> list[tuple[int, list[str]]]:
    """The records of an output, each with its offset; the first line of a record is its headline."""
    found: list[tuple[int, list[str]]] = []
    offset = 0
    is_open = False
    for line in content.splitlines(keepends=True):
        text = line[len(_PREFIX) :].decode(errors="replace").rstrip() if line.startswith(_PREFIX) else ""
        is_detail = text.startswith("  ")
        words = text.strip()
        if not words:
            is_open = False
        elif not (is_detail and is_open):
            found.append((offset, [words]))
            is_open = True
        elif words.startswith("in ") and len(found[-1][1]) > 1:  # some releases write the file on a separate line
            found[-1][1][-1] += f" {words}"
        else:
            found[-1][1].append(words)
        offset += len(line)
    return found


def _is_report(lines: list[str]) -> bool:
    return _API_ERROR.match(lines[0]) is not None or any(
        _PLACE.search(line) or _OLD_PLACE.search(line) or _THREAD.search(line) for line in lines
    )


def _report(lines: list[str], offset: int) -> ToolReport:
    text = "\n".join(lines)
    on_gpu = [line for line in lines if not line.startswith("Host Frame")]
    frames = [place for line in on_gpu if line.startswith("Device Frame") for place in _places(line)]
    places = [place for line in on_gpu if not line.startswith("Device Frame") for place in _places(line)]
    thread, block = _THREAD.search(text), _BLOCK.search(text)
    modules = [found[1] or "" for line in lines if (found := _HOST_FRAME.match(line))]
    return ToolReport(
        headline=_PLACE_IN_HEADLINE.sub("", lines[0]).rstrip(" .:"),
        places=tuple(places),
        frames=tuple(frames),
        thread=thread[1] if thread else "",
        block=block[1] if block else "",
        modules=tuple(modules),
        text="\n".join(demangled(line) for line in lines[:_LONGEST]),
        offset=offset,
    )


def _places(line: str) -> list[Place]:
    if found := _PLACE.findall(line):
        return [Place(name, file, int(number or 0)) for name, file, number in found]
    return [Place(name, file, int(number or 0)) for file, number, name in _OLD_PLACE.findall(line)]
