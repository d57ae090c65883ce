"""What a report says, put together for people: the same words on the terminal and on the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opwright.bencher.result import ROWS, Cell
from opwright.report.format import duration, of_seconds, three_figures

if TYPE_CHECKING:
    from opwright.bencher.result import Report, Row, RowName, Status
    from opwright.bencher.timer import Timing

Outcome = Literal["timed", "failed", "nothing ran"]

WHAT_ROWS_ARE: dict[RowName, str] = {
    "reference": "the reference of op.py, called as plain PyTorch",
    "compiled": "the reference under torch.compile, compiled anew for each size",
    "native": "the operator, as torch.ops has it",
    "floor": "what no implementation can avoid",
}


@dataclass(frozen=True)
class Group:
    """One operator on one device with so many threads: a table, and a picture.

    Attributes:
        op: the operator, without the library's namespace.
        device: `cpu` or `cuda`.
        threads: how many threads.
        dtype: the dtype of floating tensors whose author names none.
        cells: its cells, by size and direction.
        rows: the rows that occur.
    """

    op: str
    device: str
    threads: int
    dtype: str
    cells: tuple[Cell, ...]
    rows: tuple[RowName, ...]

    @property
    def title(self) -> str:
        """It in words."""
        threads = f", {self.threads} thread{'s' * (self.threads != 1)}" if self.device == "cpu" else ""
        return f"{self.op} on {self.device}{threads}, {self.dtype}"


@dataclass(frozen=True)
class Remark:
    """A sentence about some rows.

    Attributes:
        where: the rows, in words; empty for the bench as a whole.
        text: what there is to say.
    """

    where: str
    text: str


def groups(report: Report) -> list[Group]:
    """The cells, put together by operator, device and number of threads."""
    found: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in report.cells:
        found.setdefault((cell.op, cell.device, cell.threads), []).append(cell)
    return [
        Group(
            op.removeprefix(f"{report.namespace}::"),
            device,
            threads,
            report.dtype,
            tuple(cells),
            tuple(name for name in ROWS if any(row.name == name for cell in cells for row in cell.rows)),
        )
        for (op, device, threads), cells in found.items()
    ]


def row_of(cell: Cell, name: RowName) -> Row | None:
    """The row of that name; None where the cell has none."""
    return next((row for row in cell.rows if row.name == name), None)


def spread_words(timing: Timing) -> str:
    """Half the interquartile range, as a part of the median: `±3 %`."""
    low, high = timing.quartiles
    percent = 50 * (high - low) / timing.median
    return f"±{percent:.0f} %" if percent >= 1 else "±<1 %"


def time_words(timing: Timing) -> str:
    """The median: `12.3 µs`."""
    return of_seconds(timing.median)


def ratio_words(cell: Cell, name: RowName) -> str:
    """The part of the reference's time that a row takes: `0.412`; empty for the reference, and where there is none."""
    ratio = None if name == "reference" else cell.ratio(name)
    return "" if ratio is None else three_figures(ratio.median)


def remarks(report: Report) -> dict[str, list[Remark]]:
    """What there is to say beside the times: reasons and notes, by heading; headings without any are left out."""
    said: dict[str, list[Remark]] = {"wrong": [], "raises": [], "left out": []}
    places: dict[tuple[str, str, str], list[str]] = {}
    for group in groups(report):
        for cell in group.cells:
            for row in cell.rows:
                if row.status != "timed":
                    place = f"{cell.size} {cell.direction}"
                    places.setdefault((row.status, f"{row.name} of {group.title}", row.reason), []).append(place)
    for (status, where, reason), cells in places.items():
        said[status].append(Remark(f"{where}: {', '.join(cells)}", reason))
    said["notes"] = [Remark("", note) for note in report.notes]
    return {heading: found for heading, found in said.items() if found}


def outcome(report: Report) -> Outcome:
    """The verdict in a word."""
    if report.passed:
        return "timed"
    return "failed" if any(row.is_fault for cell in report.cells for row in cell.rows) else "nothing ran"


def tally(report: Report) -> str:
    """How many rows there are of each sort."""
    counts = Counter(row.status for cell in report.cells for row in cell.rows)
    cells = len(report.cells)
    said = [f"{counts['timed']} rows timed in {cells} cell{'s' * (cells != 1)}" if counts["timed"] else "nothing timed"]
    said += [f"{counts[status]} {words}" for status, words in _SORTS.items() if counts[status]]
    return ", ".join(said)


_SORTS: dict[Status, str] = {"wrong": "wrong", "raises": "raised", "left out": "left out"}


def verdict(report: Report) -> str:
    """The verdict in one line, with how long the bench took and when its rounds ended."""
    return f"{report.namespace}: {tally(report)} · {duration(report.seconds)} · {report.rule}"
