"""Formats numbers and text for terminals and pages."""

from __future__ import annotations

DASH = "–"
_MINUTE = 60
_KIB = 1024


def duration(seconds: float) -> str:
    """A duration: `0.4 s`, `34 s`, `2 min 5 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def printable(text: str) -> str:
    r"""The text with non-printable characters, such as control characters, escaped: `\x1b`."""
    return "".join(
        letter if letter in "\n\t" or letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text.replace("\r\n", "\n")
    )


def format_seconds(seconds: float) -> str:
    """A measured time with three significant digits: `812 ns`, `12.3 µs`, `1.05 ms`, `2.30 s`."""
    return _scaled(seconds, (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)))


def format_bytes(count: float) -> str:
    """A number of bytes with three significant digits: `812 B`, `1.50 KiB`, `24.0 MiB`."""
    return f"{count:.0f} B" if count < _KIB else _scaled(count, (("KiB", _KIB), ("MiB", _KIB**2), ("GiB", _KIB**3)))


def three_figures(number: float) -> str:
    """A positive number with three significant digits, never with an exponent: `0.0125`, `1.00`, `86.4`, `1250`."""
    if not number:
        return "0"
    exponent = int(f"{number:.2e}".partition("e")[2])  # after rounding
    return f"{number:.{max(0, 2 - exponent)}f}"


def _scaled(number: float, units: tuple[tuple[str, float], ...]) -> str:
    # After rounding: 999.9 µs is 1.00 ms.
    fitting = [unit for unit in units if float(f"{number / unit[1]:.2e}") >= 1]
    unit, size = fitting[-1] if fitting else units[0]
    return f"{three_figures(number / size)} {unit}"
