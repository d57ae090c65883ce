from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from opwright.bencher.report.digest import groups
from opwright.bencher.report.html import page
from opwright.bencher.report.plots import plot
from opwright.errors import ToolchainError

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.bencher.result import Report


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return page(report)


VOID = {"meta", "link", "wbr", "br"}


class Outline(HTMLParser):
    """The identifiers, references and texts of a page by element; rejects bad nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.identifiers: list[str] = []
        self.references: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_startendtag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        self._collect(attrs)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._collect(attrs)
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            self.texts[tag][-1] += data

    def _collect(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.identifiers.append(value or "")
            elif name.rpartition(":")[2] in {"href", "src", "srcset", "data", "action", "poster"}:
                self.references.append(value or "")
            self.references += re.findall(r"url\(([^)]*)\)", value or "")


def test_the_page_contains_its_plots_and_no_external_references(text: str) -> None:
    outline = Outline(text)
    assert len(outline.texts["svg"]) == 2
    inside = {f"#{identifier}" for identifier in outline.identifiers}
    assert {reference for reference in outline.references if reference != "data:,"} <= inside
    assert len(outline.identifiers) == len(set(outline.identifiers))
    assert "@import" not in text
    assert "<script" not in text


def test_the_plots_use_the_colours_of_the_page(report: Report, text: str) -> None:
    drawn = plot(groups(report)[0], "one")
    for name in ("ink", "soft", "line", "reference", "compiled", "native", "floor"):
        assert f"var(--{name})" in drawn
        assert f"--{name}:" in text
    assert "#0102" not in drawn


def test_a_plot_has_a_panel_for_each_direction_and_its_ratios(report: Report) -> None:
    everything, one = (
        plot(dataclasses.replace(groups(report)[0], cells=cells), "one")
        for cells in (report.cells[:8], report.cells[:1])
    )
    assert len(re.findall(r'id="one-axes_\d+"', everything)) == 8
    assert len(re.findall(r'id="one-axes_\d+"', one)) == 2
    for direction in ("forward", "recorded", "backward", "both"):
        assert f"<!-- {direction} -->" in everything


def test_equal_reports_produce_equal_plots(report: Report) -> None:
    group = groups(report)[0]
    assert plot(group, "one") == plot(group, "one")


def test_the_table_has_every_figure(text: str) -> None:
    outline = Outline(text)
    scale, bent = outline.texts["table"]
    for words in ("16 x 32", "1024 x 1024", "10.0 µs", "9.00 ms", "0.250", "±5 %", "1.9 cpu", "4.00 KiB"):
        assert words in scale
    assert "wrong" in bent
    assert "skipped" in bent
    assert 'title="quartiles 9.50 µs and 10.5 µs, 4 rounds of 5 calls; processor time 19.0 µs"' in text


def test_the_header_shows_the_machine_and_the_options(text: str) -> None:
    assert "<title>mine: failed (opwright bench)</title>" in text
    assert "34 rows timed in 9 cells, 1 wrong, 1 skipped" in text
    for name, fact in (
        ("machine", "A Processor, 8 CPUs, 16 GiB, Python 3.11.7"),
        ("GPU", "A GPU, compute capability 9.0, 128 GiB; driver 580.65"),
        ("stopping rule", "4 rounds"),
        ("seed", "7"),
    ):
        assert f"<dt>{name}</dt><dd>{fact}</dd>" in text


def test_a_gpu_has_a_second_table_with_its_rates(gpu_report: Report, text: str) -> None:
    of_gpu = page(gpu_report)
    outline = Outline(of_gpu)
    _, rates = outline.texts["table"]
    for words in ("cold", "host", "% of copy", "% of GEMM", "graphed", "20.0 µs", "1000", "40 %", "67 %"):
        assert words in rates
    assert "--graphed:" in of_gpu
    assert "<dt>GPU clocks</dt><dd>SM 1755 of 1980 MHz" in of_gpu
    # A page of CPU times shows no GPU figures.
    assert "% of copy" not in text
    assert "CUDA graphs" not in text


def test_text_from_op_py_is_escaped(text: str) -> None:
    assert "&lt;b&gt;8&lt;/b&gt; --&gt; [red]8[/]" in text
    assert "<b>8" not in text
    assert "nothing &lt;much&gt;" in text


def test_the_page_shows_reasons_and_notes(text: str) -> None:
    assert "it cannot be compiled: Unsupported: a jump" in text
    assert "<code>bent</code> has no sweep" in text


def test_a_report_without_times_has_no_plots(report: Report) -> None:
    assert "<svg" not in page(dataclasses.replace(report, cells=()))


# The program `opwright` on a machine without matplotlib.
WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from opwright.cli import main
main()
"""
LIBRARY = """
import opwright
from torch import Tensor

library = opwright.Library("doubled")

@library.op
def double(x: Tensor) -> Tensor:
    return x * 2

@double.samples
def _(make):
    yield (make.randn(8),)
"""


def bench_without_matplotlib(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB, "bench", *map(str, arguments)],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_matplotlib_html_is_rejected_before_the_bench_starts(tmp_path: Path) -> None:
    # The folder does not exist; `bench` itself would report that.
    ended = bench_without_matplotlib(tmp_path / "none", "--html", tmp_path / "page.html")
    assert ended.returncode == ToolchainError.exit_code, ended.stderr
    assert "the page of a bench has plots, which need matplotlib, and it cannot be imported" in ended.stderr
    assert 'install it with pip install "opwright[plots]", or omit --html' in ended.stderr
    assert not (tmp_path / "page.html").exists()


def test_without_matplotlib_a_bench_without_a_page_runs(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(LIBRARY)
    ended = bench_without_matplotlib(tmp_path, "--no-compile", "--rounds", "2", "--direction", "forward")
    assert ended.returncode == 0, ended.stderr
    assert "doubled: 3 rows timed in 1 cell" in ended.stdout
