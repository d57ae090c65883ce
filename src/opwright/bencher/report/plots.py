"""The plots of a bench report: times over sizes, and each row's ratio to the reference's time."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from opwright.bencher.result import DIRECTIONS, ROWS
from opwright.report.format import format_bytes, format_seconds, three_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from opwright.bencher.report.digest import Group
    from opwright.bencher.result import Cell, RowName

# The page's style sheet defines the colours, for light and dark mode. Each colour is drawn as a unique placeholder,
# which is then replaced by the style sheet's variable.
_INKS = {name: f"#0102{number:02x}" for number, name in enumerate(("ink", "soft", "line", *ROWS))}
_MARKERS: dict[RowName, str] = {"reference": "o", "compiled": "s", "graphed": "^", "native": "D", "floor": ""}
_LONGEST_LABEL = 18
_PANEL = (2.9, 2.8)  # inches
_FONT = 9.0
_RULES: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor"), _INKS["ink"]),
    **dict.fromkeys(("xtick.color", "ytick.color"), _INKS["soft"]),
    **dict.fromkeys(("axes.edgecolor", "grid.color"), _INKS["line"]),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    "font.size": _FONT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": _FONT + 1.5,
    # Text as outlines: the plot looks the same everywhere, and copies no text of an op.py into the page.
    "svg.fonttype": "path",
    "svg.hashsalt": "opwright",
}


def plot(group: Group, name: str) -> str:
    """An SVG element with the times and the ratios of a group, one panel per direction.

    Args:
        group: the cells to draw.
        name: the prefix of each identifier in the SVG; unique on the page.
    """
    directions = [one for one in DIRECTIONS if any(cell.direction == one for cell in group.cells)]
    # rc_context changes the settings of all threads; pyplot's global state is not used.
    with mpl.rc_context(_RULES):
        width, height = _PANEL
        # A single direction is drawn next to its ratios; several are drawn above theirs.
        shape = (1, 2) if len(directions) == 1 else (2, len(directions))
        figure = Figure(figsize=(max(width * shape[1], 7), height * shape[0]), layout="constrained")
        panels = figure.subplots(*shape, squeeze=False, sharey="row" if shape[0] > 1 else False).flatten()
        for at, direction in enumerate(directions):
            cells = sorted((cell for cell in group.cells if cell.direction == direction), key=lambda cell: cell.bytes)
            _times(panels[at], cells, group.rows)
            _ratios(
                panels[len(directions) + at], [cell for cell in group.cells if cell.direction == direction], group.rows
            )
            panels[at].set_title(direction, loc="left", fontweight="bold")
        panels[0].set_ylabel("time of one call")
        panels[len(directions)].set_ylabel("ratio to the reference's time")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return _for_page(drawn.getvalue(), name)


def _times(panel: Axes, cells: Sequence[Cell], rows: Sequence[RowName]) -> None:
    """Times over bytes with their quartiles, both on logarithmic scales."""
    for name in rows:
        points = [(cell.bytes, timing) for cell in cells if (timing := cell.timing(name))]
        if not points:
            continue
        middles = [timing.median for _, timing in points]
        spreads = [[abs(timing.quartiles[side] - timing.median) for _, timing in points] for side in (0, 1)]
        panel.errorbar(
            [count for count, _ in points],
            middles,
            spreads,
            label=name,
            color=_INKS[name],
            marker=_MARKERS[name],
            markersize=4,
            linewidth=1.4,
            linestyle="--" if name == "floor" else "-",
            capsize=2,
            elinewidth=0.8,
        )
    if len({cell.bytes for cell in cells}) == 1:
        panel.set_xlim(cells[0].bytes / 2, cells[0].bytes * 2)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.xaxis.set_major_locator(LogLocator(base=2, numticks=4))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda count, _: _short(format_bytes(count))))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _short(format_seconds(seconds))))
    panel.yaxis.set_minor_locator(NullLocator())  # its labels would have no units
    panel.set_xlabel("bytes to read and write")
    panel.grid(visible=True, which="major", linewidth=0.6)
    panel.margins(x=0.08)


def _ratios(panel: Axes, cells: Sequence[Cell], rows: Sequence[RowName]) -> None:
    """Bars from 1, the reference: downwards if faster, upwards if slower; the floor as a line."""
    bars = [name for name in rows if name not in {"reference", "floor"}]
    width = 0.76 / max(1, len(bars))
    for at, cell in enumerate(cells):
        for number, name in enumerate(bars):
            if (ratio := cell.ratio(name)) is not None:
                place = at + (number - (len(bars) - 1) / 2) * width
                panel.bar(place, ratio.median - 1, width * 0.92, bottom=1, color=_INKS[name])
                panel.vlines(place, *ratio.quartiles, color=_INKS["ink"], linewidth=0.8)
        if (floor := cell.ratio("floor")) is not None:
            panel.hlines(floor.median, at - 0.42, at + 0.42, color=_INKS["floor"], linewidth=1.6, linestyle=(0, (3, 1)))
    panel.axhline(1, color=_INKS["reference"], linewidth=1.2)
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: _short(three_figures(ratio))))
    panel.yaxis.set_minor_locator(NullLocator())
    labels = [
        cell.size if len(cell.size) <= _LONGEST_LABEL else f"{cell.size[: _LONGEST_LABEL - 1]}…" for cell in cells
    ]
    panel.xaxis.set_major_locator(FixedLocator(list(range(len(cells)))))
    panel.set_xticklabels(labels, rotation=35, ha="right", rotation_mode="anchor", parse_math=False)
    panel.grid(visible=True, axis="y", which="major", linewidth=0.6)
    panel.set_axisbelow(True)


def _short(figures: str) -> str:
    """`8.00 KiB` as `8 KiB`, because the value of a tick is exact."""
    number, blank, unit = figures.partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + blank + unit


def _for_page(svg: str, name: str) -> str:
    """The SVG as an element of the page: without an XML header, with unique identifiers and the page's colours."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", element)
    for ink, drawn in _INKS.items():
        element = element.replace(drawn, f"var(--{ink})")
    return element
