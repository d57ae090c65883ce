"""The final table of the demonstration: a line for each route and step."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

CAPTION = """Total: {seconds:.0f} s. The builds ran in parallel; each takes less time alone.
The difference of scores is relative to the largest score."""


@dataclass(frozen=True)
class Row:
    """A line of the table: a route or a step, where it ran, and its duration.

    Attributes:
        route: its name.
        where: the kind of process that it ran in.
        build_s: the seconds until it could run; None if another row built it.
        run_ms: the median duration of a run in milliseconds.
        difference: the largest deviation from the expected result: of pictures in grey levels, of scores relative to
            the largest; None if there was nothing to compare.
        allowed: the maximum allowed difference.
    """

    route: str
    where: str
    build_s: float | None = None
    run_ms: float | None = None
    difference: float | None = None
    allowed: float = 0.0

    @property
    def is_ok(self) -> bool:
        """Whether the difference is allowed; NaN is not."""
        return self.difference is None or self.difference <= self.allowed


def table_of(parts: dict[str, list[Row]], seconds: float) -> Table:
    """The whole table: a heading and its rows for each part; `seconds` is the total duration."""
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
