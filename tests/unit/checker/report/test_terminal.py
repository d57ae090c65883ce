from __future__ import annotations

import dataclasses
import io
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from opwright.checker.kinds import Kind
from opwright.checker.report.terminal import show
from opwright.checker.verdict import Cell, Failure, Report

if TYPE_CHECKING:
    from collections.abc import Callable


def shown(report: Report, width: int = 100, *, terminal: bool = False, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    console = Console(file=stream, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    show(report, console)
    return raw.getvalue().decode(encoding)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_the_matrix_has_a_row_for_each_operator_and_a_column_for_each_runtime(report: Report) -> None:
    assert shown(report).splitlines()[2:7] == [
        "                                                                         host    host    host",
        "            eager  autograd  compile  vmap  trace  script  export  aoti  linked  script  aoti",
        "scale  cpu  FAIL   ok        ok       –     FAIL   FAIL    ok      ok    skip    skip    ok",
        "shift  cpu  ok     ok        ok       –     ok     ok      ok      ok    skip    skip    ok",
        "– = not applicable, skip = not run",
    ]


@pytest.mark.parametrize("width", [30, 60, 80, 92, 100, 200])
@pytest.mark.parametrize("op", ["scale", "a_name_that_is_as_long_as_the_names_of_operators_get"])
def test_the_matrix_is_intact_at_every_width(report: Report, width: int, op: str) -> None:
    named = dataclasses.replace(
        report, cells=tuple(dataclasses.replace(cell, op=f"mine::{op}") for cell in report.cells[:11])
    )
    matrix = plain(shown(named, width, terminal=True)).split("\n\nFAIL")[0].splitlines()[2:-1]
    marks = " ".join(line.partition("cpu ")[2] for line in matrix if "cpu " in line).split()
    assert marks == ["FAIL", "ok", "ok", "–", "FAIL", "FAIL", "ok", "ok", "skip", "skip", "ok"]
    assert all(len(line) <= max(width, len(op)) for line in matrix)


def test_a_row_for_each_device_names_its_operator_once(report: Report) -> None:
    on_gpu = tuple(dataclasses.replace(cell, device="cuda") for cell in report.cells[:11])
    both = dataclasses.replace(report, cells=(*report.cells[:11], *on_gpu))
    text = shown(both)
    assert re.findall(r"^(\w* +cuda|\w* +cpu ) +FAIL ", text, re.MULTILINE) == ["scale  cpu ", "       cuda"]
    assert "FAIL  scale in eager on cpu: strides are ignored" in text
    assert "also in: trace on cpu, script on cpu, eager on cuda, trace on cuda, script on cuda" in text


def test_a_fault_shows_the_call_the_result_and_the_fix(report_of: Callable[..., Report]) -> None:
    failure = Failure(Kind.OFFSET, "x with an offset", "x = torch.ones(4)[1:]\nf(x)", "1\n2", "3\n4", "seen twice")
    assert shown(report_of(failure)).split("\n\n")[2] == (
        "FAIL  scale in eager: the storage offset is ignored (ignored-offset)\n"
        "  case          x with an offset\n"
        "  repro:\n"
        "x = torch.ones(4)[1:]\n"
        "f(x)\n"
        "  got           1\n"
        "                2\n"
        "  expected      3\n"
        "                4\n"
        "  likely cause  the kernel reads from the start of the storage instead of the start of the tensor\n"
        "  fix           use `x.const_data_ptr<T>()`, which includes the offset\n"
        "  detail        seen twice"
    )


def test_a_fault_in_several_runtimes_is_shown_once(report: Report) -> None:
    text = shown(report)
    assert text.count("strides are ignored") == 1
    assert "x transposed, in eager" in text
    assert "  also in: trace, script\n" in text
    assert text.count("a tensor is read as the wrong dtype") == 1


def test_different_messages_of_two_runtimes_are_two_faults(report_of: Callable[..., Report]) -> None:
    cells = [
        Cell("mine::f", runtime, "cpu", "failed", failures=(Failure(Kind.RUNTIME, detail=words),))
        for runtime, words in (("export", "no schema"), ("aoti", "no compiler"), ("host-aoti", "no schema"))
    ]
    text = shown(dataclasses.replace(report_of(), cells=tuple(cells)))
    assert text.count("the operator does not work in this runtime") == 2
    assert "no compiler" in text
    assert "also in: host-aoti" in text


def test_the_repro_can_be_pasted_at_every_width(report_of: Callable[..., Report]) -> None:
    call = "if True:\n    f(" + ", ".join(f"factor_{number}={number}.0" for number in range(40)) + ")"
    text = plain(shown(report_of(Failure(Kind.CRASH, repro=call)), 40, terminal=True))
    assert f"\n{call}\n" in text


def test_sentences_are_wrapped_only_on_a_terminal(report: Report) -> None:
    whole = f"  fix           {Kind.STRIDES.diagnosis.fix}\n"
    assert whole in shown(report, 60)
    assert "  fix           call torch::stable::contiguous(x), use\n                x.strides()" in plain(
        shown(report, 60, terminal=True)
    )


def test_a_long_detail_is_shortened_in_the_middle_with_a_marker(report_of: Callable[..., Report]) -> None:
    detail = "\n".join(f"frame {number}" for number in range(50))
    text = shown(report_of(Failure(Kind.SANITIZER, got="x" * 5000, detail=detail)))
    assert "frame 13\n                [32 lines omitted; see --json or --html]\n" in text
    assert "frame 46" in text
    assert "frame 30" not in text
    assert "x [4000 more characters; see --json or --html]" in text


def test_reasons_are_printed_once_for_all_cells_that_share_them(report: Report) -> None:
    text = shown(report)
    assert "not applicable\n  - vmap: the operator does not claim it\n" in text
    assert "not run\n  - host-linked, host-script: no C++ compiler\n" in text
    assert (
        "notes\n  - export of scale: dynamic shapes were left out\n"
        "  - scale: rejected varied inputs with an error (allowed): 12 of 40 in export\n"
    ) in text


def test_a_cell_that_failed_without_a_fault_is_reported(report_of: Callable[..., Report]) -> None:
    text = shown(dataclasses.replace(report_of(), cells=(Cell("mine::f", "eager", "cpu", "failed"),)))
    assert "failed\n  - eager: no reason was reported\n" in text


def test_the_last_line_is_the_verdict(report: Report) -> None:
    assert shown(report).splitlines()[-1] == (
        "mine: 13 of 16 cells passed, 3 failed (ignored-strides, wrong-dtype), 2 not applicable, 4 not run"
        " · 34 s · seed 7"
    )


def test_the_verdict_names_sanitizers_and_long_times(report: Report) -> None:
    sanitized = dataclasses.replace(report, sanitize=("address", "undefined"), seconds=125.4)
    assert shown(sanitized).splitlines()[-1].endswith(" · 2 min 5 s · seed 7 · sanitizers address, undefined")


def test_a_check_in_which_no_cell_ran_does_not_pass(report: Report) -> None:
    waiting = tuple(cell for cell in report.cells if cell.status in {"not applicable", "not run"})
    last = shown(dataclasses.replace(report, cells=waiting)).splitlines()[-1]
    assert last == "mine: no cell ran, 2 not applicable, 4 not run · 34 s · seed 7"


def test_a_library_that_does_not_build_is_a_fault_without_a_matrix(report_of: Callable[..., Report]) -> None:
    text = shown(report_of(library=(Failure(Kind.BUILD, got="cpu.cpp:3:9: error: 'z'"),)))
    assert "FAIL  library mine: the library does not build (build)\n  got           cpu.cpp:3:9: error: 'z'\n" in text
    assert text.splitlines()[-1] == "mine: the library does not build (build), no cell ran · 3.0 s · seed 0"
    assert "eager" not in text


def test_colors_are_used_only_on_a_terminal(report: Report) -> None:
    assert "\x1b[1;31mFAIL" in shown(report, terminal=True)
    assert "\x1b" not in shown(report)


def test_the_output_of_a_kernel_cannot_control_the_terminal(report_of: Callable[..., Report]) -> None:
    text = shown(report_of(Failure(Kind.CRASH, got="\x1b[2Jgone\r\nand [bold]so\udcff on\x07")))
    assert r"\x1b[2Jgone" in text
    assert r"and [bold]so\udcff on\x07" in text
    assert "\x1b" not in text


def test_an_ascii_terminal_is_supported(report: Report, report_of: Callable[..., Report]) -> None:
    text = shown(report, encoding="ascii")
    assert "scale  cpu  FAIL   ok        ok       -     FAIL" in text
    assert "| 34 s | seed 7" in text
    assert r"caf\xe9" in shown(report_of(Failure(Kind.CRASH, got="café")), encoding="ascii")
