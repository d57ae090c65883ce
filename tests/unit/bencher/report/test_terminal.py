from __future__ import annotations

import dataclasses
import io
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from opwright.bencher.report.digest import outcome, tally
from opwright.bencher.report.terminal import show

if TYPE_CHECKING:
    from opwright.bencher.result import Report


def shown(report: Report, width: int = 100, *, terminal: bool = False, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    console = Console(file=stream, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    show(report, console)
    return re.sub(r"\x1b\[[0-9;]*m", "", raw.getvalue().decode(encoding))


def test_the_machine_is_printed_above_the_times(report: Report) -> None:
    assert shown(report).splitlines()[:7] == [
        "mine · ops/mine",
        "machine: A Processor, 8 CPUs, 16 GiB, Python 3.11.7",
        "instruction sets: avx2, avx512f",
        "GPU: A GPU, compute capability 9.0, 128 GiB; driver 580.65",
        "PyTorch: 2.13.0 (CUDA 13.0 build), AVX512 kernels",
        "math libraries: MKL 2024.2",
        "date: 2026-11-21",
    ]


def test_a_table_has_a_line_per_size_and_direction(report: Report) -> None:
    d = "±5 % 1.9 cpu"
    assert shown(report).split("\n\n")[1].splitlines() == [
        "scale on cpu, 2 threads, float32",
        "size         direction  reference             compiled                    native                      floor",
        f"16 x 32      forward    10.0 µs {d}  8.00 µs {d} 0.800  2.50 µs {d} 0.250  1.00 µs {d} 0.100",
        f"             recorded   10.0 µs {d}  8.00 µs {d} 0.800  2.50 µs {d} 0.250  1.00 µs {d} 0.100",
        f"             backward   10.0 µs {d}  8.00 µs {d} 0.800  2.50 µs {d} 0.250  1.00 µs {d} 0.100",
        f"             both       10.0 µs {d}  8.00 µs {d} 0.800  2.50 µs {d} 0.250  1.00 µs {d} 0.100",
        f"1024 x 1024  forward    9.00 ms {d}  7.20 ms {d} 0.800  2.25 ms {d} 0.250   900 µs {d} 0.100",
        f"             recorded   9.00 ms {d}  7.20 ms {d} 0.800  2.25 ms {d} 0.250   900 µs {d} 0.100",
        f"             backward   9.00 ms {d}  7.20 ms {d} 0.800  2.25 ms {d} 0.250   900 µs {d} 0.100",
        f"             both       9.00 ms {d}  7.20 ms {d} 0.800  2.25 ms {d} 0.250   900 µs {d} 0.100",
    ]


def test_a_narrow_terminal_shows_fewer_details(report: Report) -> None:
    wide, narrow, narrowest = (shown(report, width, terminal=True).split("\n\n")[1] for width in (130, 110, 90))
    assert "16 x 32      forward    10.0 µs ±5 % 1.9 cpu  8.00 µs ±5 % 1.9 cpu 0.800" in wide
    assert "16 x 32      forward    10.0 µs 1.9 cpu  8.00 µs 1.9 cpu 0.800" in narrow
    assert "16 x 32      forward    10.0 µs    8.00 µs 0.800  2.50 µs 0.250  1.00 µs 0.100" in narrowest


def test_a_wrong_row_has_no_time_and_its_reason_is_printed_below(report: Report) -> None:
    text = shown(report)
    (line,) = [line for line in text.splitlines() if "WRONG" in line]
    assert " ".join(line.split("forward")[1].split()) == "3.00 µs ±5 % 1.9 cpu skipped WRONG 1.00 µs ±5 % 1.9 cpu 0.333"
    where = "native of bent on cpu, 2 threads, float32: <b>8</b> --> [red]8[/] forward"
    assert f"wrong\n  - {where}: float32 (8,), at [0]: 3.0" in text
    assert "skipped\n  - compiled of bent on cpu, 2 threads, float32: " in text
    assert "it cannot be compiled: Unsupported: a jump" in text
    assert "notes\n  - `bent` has no sweep\n" in text


def test_the_last_line_is_the_verdict(report: Report) -> None:
    assert shown(report).splitlines()[-1] == ("mine: 34 rows timed in 9 cells, 1 wrong, 1 skipped · 34 s · 4 rounds")
    assert outcome(report) == "failed"
    right = dataclasses.replace(report, cells=report.cells[:1])
    assert (outcome(right), tally(right)) == ("timed", "4 rows timed in 1 cell")
    nothing = dataclasses.replace(report, cells=())
    assert (outcome(nothing), tally(nothing)) == ("nothing ran", "nothing timed")


@pytest.mark.parametrize("width", [20, 60, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_report_is_printed_at_every_width_and_encoding(report: Report, width: int, encoding: str) -> None:
    text = shown(report, width, terminal=True, encoding=encoding)
    assert "1024 x 1024" in text
    assert ("10.0 us" if encoding == "ascii" else "10.0 µs") in text


def test_a_gpu_has_a_second_table_with_cold_times_host_times_and_rates(report: Report, gpu_report: Report) -> None:
    lines = shown(gpu_report, 200).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("size     direction  row"))
    assert lines[first : first + 6] == [
        "size     direction  row           time     cold     host  GB/s  % of copy  TFLOP/s  % of GEMM",
        "16 x 32  forward    reference  10.0 µs  20.0 µs  5.00 µs  1000       40 %      100      200 %",
        "16 x 32  forward    compiled   20.0 µs  40.0 µs  10.0 µs   500       20 %     50.0      100 %",
        "16 x 32  forward    graphed    30.0 µs  60.0 µs  15.0 µs   333       13 %     33.3       67 %",
        "16 x 32  forward    native     40.0 µs  80.0 µs  20.0 µs   250       10 %     25.0       50 %",
        "16 x 32  forward    floor      50.0 µs   100 µs  25.0 µs   200        8 %",
    ]
    text = "\n".join(lines)
    assert "GPU clocks: SM 1755 of 1980 MHz, memory 2619 MHz, P0, throttled by: software power cap" in text
    assert "cold: of a single call, on an idle GPU with its L2 cache flushed" in text
    assert "cold" not in shown(report)


def test_without_matrix_products_the_table_has_no_columns_for_them(gpu_report: Report) -> None:
    (one,) = gpu_report.cells
    assert one.gpu is not None
    elementwise = dataclasses.replace(one, gpu=dataclasses.replace(one.gpu, flops=0))
    text = shown(dataclasses.replace(gpu_report, cells=(elementwise,)))
    assert "GB/s  % of copy\n" in text
    assert "% of GEMM" not in text
