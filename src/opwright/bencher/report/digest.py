"""The text of a bench report, the same on the terminal and on the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opwright.bencher.result import ROWS, Cell
from opwright.report.format import DASH, duration, format_seconds, three_figures

if TYPE_CHECKING:
    from opwright.bencher.on_gpu import Rates
    from opwright.bencher.result import Report, Row, RowName, Status
    from opwright.bencher.timer import Timing

Outcome = Literal["timed", "failed", "nothing ran"]

WHAT_ROWS_ARE: dict[RowName, str] = {
    "reference": "the reference of op.py, called as plain PyTorch",
    "compiled": "the reference under torch.compile, compiled again for each size",
    "graphed": "the same with CUDA graphs, as in the mode reduce-overhead",
    "native": "the operator, called through torch.ops",
    "floor": "the work that no implementation can avoid",
}
GPU_LEGEND = (
    "time: of consecutive calls; cold: of a single call, on an idle GPU with its L2 cache flushed, including the "
    "launch of its first kernel; host: until a call returned; GB/s: of the arguments, results and gradients, each "
    "read or written once, a lower bound; TFLOP/s: of the matrix products in the reference; both by the first time"
)


@dataclass(frozen=True)
class Group:
    """One operator on one device with one number of threads: one table and one plot of the report.

    Attributes:
        op: the operator, without the library's namespace.
        device: `cpu` or `cuda`.
        threads: the number of CPU threads.
        dtype: the dtype of floating-point tensors for which the sweep does not specify one.
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
        """The heading of the group."""
        threads = f", {self.threads} thread{'s' * (self.threads != 1)}" if self.device == "cpu" else ""
        return f"{self.op} on {self.device}{threads}, {self.dtype}"


@dataclass(frozen=True)
class Remark:
    """A sentence about some rows.

    Attributes:
        where: the rows; empty for the whole bench.
        text: the sentence.
    """

    where: str
    text: str


def groups(report: Report) -> list[Group]:
    """The cells, grouped by operator, device and number of threads."""
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
    """The row with that name; None if the cell has none."""
    return next((row for row in cell.rows if row.name == name), None)


def format_spread(timing: Timing) -> str:
    """Half the interquartile range, relative to the median: `±3 %`."""
    low, high = timing.quartiles
    percent = 50 * (high - low) / timing.median
    return f"±{percent:.0f} %" if percent >= 1 else "±<1 %"


def format_time(timing: Timing) -> str:
    """The median: `12.3 µs`."""
    return format_seconds(timing.median)


def format_processors(timing: Timing) -> str:
    """The number of busy processors, such as `1.9 cpu`; empty if it was not measured."""
    return "" if timing.processors is None else f"{timing.processors:.1f} cpu"


def format_ratio(cell: Cell, name: RowName) -> str:
    """The ratio of a row's time to the reference's: `0.412`; empty for the reference itself, or without a ratio."""
    ratio = None if name == "reference" else cell.ratio(name)
    return "" if ratio is None else three_figures(ratio.median)


def gpu_lines(group: Group) -> list[list[str]]:
    """The figures that exist only on a GPU: the headings, then a line per timed row of each cell; empty on the CPU."""
    timed = [
        (cell, name, timing, rates)
        for cell in group.cells
        for name in group.rows
        if (timing := cell.timing(name)) and (rates := cell.rates(name))
    ]
    headings = ["size", "direction", "row", "time", "cold", "host", "GB/s", "% of copy"]
    if not any(rates.flops_per_second for *_, rates in timed):
        return [headings, *(_gpu_line(*one) for one in timed)] if timed else []
    lines = [[*_gpu_line(*one), *_product_figures(one[-1])] for one in timed]
    return [[*headings, "TFLOP/s", "% of GEMM"], *lines]


def _gpu_line(cell: Cell, name: RowName, timing: Timing, rates: Rates) -> list[str]:
    others = [format_seconds(spread.median) if spread else DASH for spread in (timing.cold, timing.host)]
    return [
        *(cell.size, cell.direction, name, format_time(timing), *others),
        three_figures(rates.bytes_per_second / 1e9),
        f"{100 * rates.of_copy:.0f} %",
    ]


def _product_figures(rates: Rates) -> list[str]:
    if rates.flops_per_second is None:
        return ["", ""]
    of_product = "" if rates.of_product is None else f"{100 * rates.of_product:.0f} %"
    return [three_figures(rates.flops_per_second / 1e12), of_product]


def remarks(report: Report) -> dict[str, list[Remark]]:
    """The reasons and notes, by heading; only headings with remarks."""
    by_heading: dict[str, list[Remark]] = {"wrong": [], "too fast": [], "raises": [], "skipped": []}
    places: dict[tuple[str, str, str], list[str]] = {}
    for group in groups(report):
        for cell in group.cells:
            for row in cell.rows:
                if row.status != "timed":
                    place = f"{cell.size} {cell.direction}"
                    places.setdefault((row.status, f"{row.name} of {group.title}", row.reason), []).append(place)
    for (status, where, reason), cells in places.items():
        by_heading[status].append(Remark(f"{where}: {', '.join(cells)}", reason))
    by_heading["notes"] = [Remark("", note) for note in report.notes]
    return {heading: found for heading, found in by_heading.items() if found}


def outcome(report: Report) -> Outcome:
    """The verdict in one word."""
    if report.passed:
        return "timed"
    return "failed" if any(row.is_fault for cell in report.cells for row in cell.rows) else "nothing ran"


def tally(report: Report) -> str:
    """The number of rows with each status."""
    counts = Counter(row.status for cell in report.cells for row in cell.rows)
    cells = len(report.cells)
    timed = f"{counts['timed']} rows timed in {cells} cell{'s' * (cells != 1)}"
    parts = [timed if counts["timed"] else "nothing timed"]
    parts += [f"{counts[status]} {words}" for status, words in _OTHER_STATUSES.items() if counts[status]]
    return ", ".join(parts)


_OTHER_STATUSES: dict[Status, str] = {
    "wrong": "wrong",
    "too fast": "too fast",
    "raises": "raised",
    "skipped": "skipped",
}


def verdict(report: Report) -> str:
    """The verdict in one line, with the duration of the benchmark and its stopping rule."""
    return f"{report.namespace}: {tally(report)} · {duration(report.seconds)} · {report.rule}"
