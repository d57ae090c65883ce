"""What the demonstration ends with: a line for each road and step."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

CAPTION = """Total: {seconds:.0f} s. What is built was built side by side: alone, each takes less.
The difference of scores is relative to the largest score."""


@dataclass(frozen=True)
class Row:
    """A line of the table: a road or a step, where it ran, and what it took.

    Attributes:
        route: its name.
        where: in what it ran.
        build_s: the seconds until it could run; None where that was another's work.
        run_ms: the median of the milliseconds of a run.
        difference: the largest one from what was expected: of pictures in grey levels, of scores as a part of the
            largest; None where there was nothing to compare.
        allowed: how large it may be.
    """

    route: str
    where: str
    build_s: float | None = None
    run_ms: float | None = None
    difference: float | None = None
    allowed: float = 0.0

    @property
    def is_well(self) -> bool:
        """Whether the difference is none that matters; one that is no number does."""
        return self.difference is None or self.difference <= self.allowed


def table_of(parts: dict[str, list[Row]], seconds: float) -> Table:
    """The table of the whole: a heading and its rows for each part; `seconds` is what all took together."""
    table = Table(box=SIMPLE_HEAD, caption=CAPTION.format(seconds=seconds))
    for heading in ("", "where it ran"):
        table.add_column(heading, no_wrap=True)
    for heading in ("to build", "to run", "differs\nby"):
        table.add_column(heading, justify="right")
    for part, rows in parts.items():
        table.add_row(f"[bold]{part}[/]")
        for row in rows:
            build = "" if row.build_s is None else f"{row.build_s:.1f} s"
            run = "" if row.run_ms is None else f"{row.run_ms:.2f} ms"
            difference = "" if row.difference is None else f"{row.difference:.1e}" if row.difference else "0"
            table.add_row(f"  {row.route}", row.where, build, run, difference)
    return table
