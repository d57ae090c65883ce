"""Whether a program printed what a page shows, apart from figures and paths."""

from __future__ import annotations

import re
from functools import reduce

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_UNITS = "s|ms|µs|us|ns|min|[KMGT]i?B|kB|B|bytes|KiB/s|MB/s|GB/s|GHz|MHz|%|×|x|rows/s|CPUs?|times"
# What differs between two runs or two machines, in the order in which it is replaced.
_VARIABLE = (
    (re.compile(r"(?<![\w.])(?:~|/|\./)[\w.+@-]*(?:/[\w.+@-]*)+"), "PATH"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "DIGEST"),
    (re.compile(r"\bseed \d+"), "seed N"),
    (re.compile(r"\b\d+(?:\.\d+){2,}(?:\+\w+)?"), "VERSION"),
    (re.compile(r"-?(?<![\w.])\d[\d,]*\.\d*(?:e[+-]?\d+)?"), "N"),
    (re.compile(r"-?(?<![\w.])\d+e[+-]?\d+"), "N"),
    (re.compile(rf"(?<![\w.])(?:\d[\d,]*|N) ?(?:{_UNITS})(?![\w])"), "N unit"),
)
# What a command prints if another page builds the same library at the same time.
_WAITING = re.compile(r"^\S+: (?:another process is building this;|waited .* for the other build)")


def normalised(text: str) -> list[str]:
    """Return the lines of an output without colours, figures with units, versions, digests, paths and alignment."""
    lines = []
    for line in _ANSI.sub("", text).replace("\r", "\n").splitlines():
        constant = reduce(lambda text, variable: variable[0].sub(variable[1], text), _VARIABLE, line)
        lines.append(" ".join(constant.split()))
    return [line for line in lines if line and not _WAITING.match(line)]


def agrees(printed: str, shown: str) -> bool:
    """Return whether `printed` is what the page shows; `...` in `shown` stands for any text, alone for any lines."""
    pattern = ""
    for line in normalised(shown):
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, line.split("..."))) + "\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in normalised(printed))) is not None
