"""Parsing the output and the exit of a probe; shell scripts replace the probe."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import torch

from opwright.errors import ToolchainError
from opwright.probe.run import ProbeRun, run_probe

if TYPE_CHECKING:
    from pathlib import Path

SUMMARY = 'echo \'{"python_mapped": false, "load_seconds": 0.25, "median_run_seconds": 1e-06}\''


def play(folder: Path, *lines: str, timeout_s: float | None = None) -> ProbeRun:
    """Returns a function that runs a script of the given lines; `$3` is the file of responses."""
    program = folder / "program"
    program.write_text("\n".join(["#!/bin/sh", *lines]))
    program.chmod(0o755)
    return run_probe(program, folder / "model.pt", [(1,)], work=folder, timeout_s=timeout_s)


def test_a_finished_run_has_responses(tmp_path: Path) -> None:
    torch.save((((torch.ones(2),), (), torch.empty(0, dtype=torch.uint8)),), tmp_path / "written.pt")
    done = play(tmp_path, "echo request 0", "echo answered", f'cp "{tmp_path}/written.pt" "$3"', SUMMARY)
    assert [response.error for response in done.responses] == [""]
    assert (done.error, done.signal, done.request, done.timed_out) == ("", "", None, False)
    assert (done.python_mapped, done.load_seconds, done.median_run_seconds) == (False, 0.25, 1e-06)
    assert done.command.startswith(str(tmp_path / "program"))
    assert done.output.startswith("request 0\nanswered\n")


def test_the_command_contains_options_and_files(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$@"')
    program.chmod(0o755)
    done = run_probe(program, tmp_path / "m.pt", [], work=tmp_path, libraries=[tmp_path / "a.so"], backward=True)
    files = " ".join(str(tmp_path / name) for name in ("m.pt", "requests.pt", "responses.pt"))
    assert done.output == f"--library {tmp_path}/a.so --backward {files}\n"


@pytest.mark.parametrize(
    ("lines", "request_number", "signal", "error"),
    [
        (
            ["echo request 0", "echo request 1", "kill -SEGV $$"],
            1,
            "SIGSEGV",
            "the probe was terminated in request 1 by SIGSEGV",
        ),
        (
            ["printf 'half a line'; echo request 0", "kill -BUS $$"],
            0,
            "SIGBUS",
            "the probe was terminated in request 0 by SIGBUS",
        ),
        (["kill -ABRT $$"], None, "SIGABRT", "the probe was terminated before the requests by SIGABRT"),
        (
            ["echo request 0", "echo answered", "kill -SEGV $$"],
            None,
            "SIGSEGV",
            "the probe was terminated after the requests by SIGSEGV",
        ),
        (
            ["echo request 0", "echo terminate called >&2", "echo '  what():  no more of it' >&2", "kill -ABRT $$"],
            0,
            "SIGABRT",
            "the probe was terminated in request 0 by SIGABRT: no more of it",
        ),
        (["echo request 0", "exit 0"], 0, "", "the probe exited in request 0 with status 0"),
        (["echo some words", "echo 'probe: the reason' >&2", "exit 4"], None, "", "the reason"),
        (["exit 127"], None, "", "the probe exited before the requests with status 127"),
        (
            ["echo no such library", "exit 127"],
            None,
            "",
            "the probe exited before the requests with status 127: no such library",
        ),
    ],
)
def test_an_early_exit_is_reported_with_its_reason_and_request(
    tmp_path: Path, lines: list[str], request_number: int | None, signal: str, error: str
) -> None:
    done = play(tmp_path, *lines)
    assert (done.request, done.signal, done.error) == (request_number, signal, error)
    assert done.responses == ()
    assert done.python_mapped is None


def test_a_crash_after_the_last_response_is_still_a_crash(tmp_path: Path) -> None:
    done = play(tmp_path, "echo request 0", "echo answered", SUMMARY, "kill -SEGV $$")
    assert (done.request, done.signal, done.responses) == (None, "SIGSEGV", ())
    assert done.error == "the probe was terminated after the requests by SIGSEGV"


def test_a_timeout_names_the_request(tmp_path: Path) -> None:
    started = time.monotonic()
    done = play(tmp_path, "echo request 0", "sleep 99", timeout_s=1)
    assert time.monotonic() - started < 20
    assert done.timed_out
    assert (done.request, done.error) == (0, "the probe was killed in request 0: it exceeded its time limit of 1 s")


def test_responses_of_an_earlier_run_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "responses.pt").write_text("old")
    assert play(tmp_path, 'test -e "$3" && echo old').output == ""


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    done = play(tmp_path, 'mkdir "$TMPDIR/unpacked" && echo made it', "kill -KILL $$")
    assert done.output == "made it\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program", "requests.pt"]


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="nowhere cannot be run"):
        run_probe(tmp_path / "nowhere", tmp_path / "model.pt", [], work=tmp_path)
