"""Several processes build at the same time, and some are killed: no process hangs, and no file is incomplete."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import write_program

if TYPE_CHECKING:
    from pathlib import Path

BUILD = """
import sys
from opwright.cache.cache import Cache
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
artefact = build_plan(plan_sources("mine", sys.argv[1:]))
print(len(artefact.compiled), artefact.path)
"""
LONGEST_S = 200.0  # enough on a busy machine, but less than the slowest compiler below


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.cpp").write_text('extern "C" __attribute__((visibility("default"))) int a() { return 1; }\n')
    # A slow compiler, so that builds overlap.
    write_program(tmp_path / "slow-g++", 'echo "$*" >> "$SLOW_LOG"\nsleep "$SLOW_S"\nexec g++ "$@"')
    return tmp_path


def _start(folder: Path, seconds: float) -> subprocess.Popen[str]:
    environment = {
        "CXX": str(folder / "slow-g++"),
        "SLOW_S": str(seconds),
        "SLOW_LOG": str(folder / "log"),
        "OPWRIGHT_CACHE": str(folder / "cache"),
    }
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(folder / "a.cpp")],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait_for_the_compiler(folder: Path) -> None:
    until = time.monotonic() + LONGEST_S
    while not (folder / "log").exists():
        assert time.monotonic() < until, "the compiler was never started"
        time.sleep(0.02)


def _wait_for_the_end(killed: subprocess.Popen[str]) -> None:
    with killed:  # closes its pipes, whose other ends a surviving compiler still holds
        pass


def test_concurrent_processes_share_one_build(folder: Path) -> None:
    processes = [_start(folder, 0.5) for _ in range(5)]
    answers = [process.communicate(timeout=LONGEST_S) for process in processes]
    assert [process.returncode for process in processes] == [0] * 5, answers
    counts, paths = zip(*(out.split() for out, _ in answers), strict=True)
    assert sorted(counts) == ["0", "0", "0", "0", "1"]
    assert len(set(paths)) == 1
    # Other runs of the compiler only query its search paths.
    made = [line for line in (folder / "log").read_text().splitlines() if " -o " in line]
    assert [" -c " in line for line in made] == [True, False]


def test_a_waiting_process_reports_it(folder: Path) -> None:
    first = _start(folder, 300)
    _wait_for_the_compiler(folder)
    second = _start(folder, 0)
    assert second.stderr
    assert "another process is building this; waiting for it" in second.stderr.readline()
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    out, _ = second.communicate(timeout=LONGEST_S)
    assert out.startswith("1 ")


@pytest.mark.parametrize("group", [False, True], ids=["the-builder-alone", "the-builder-and-its-compilers"])
def test_a_killed_build_never_blocks_the_others_and_leaves_no_library(folder: Path, group: bool) -> None:
    killed = _start(folder, 300)  # waiting for this compiler would exceed the time limit below
    _wait_for_the_compiler(folder)
    if group:
        os.killpg(killed.pid, signal.SIGKILL)
    else:
        killed.kill()
    _wait_for_the_end(killed)
    assert not list((folder / "cache").rglob("*.so"))
    try:
        after = _start(folder, 0)
        out, err = after.communicate(timeout=LONGEST_S)
        assert after.returncode == 0, err
        assert out.startswith("1 ")
        again = _start(folder, 0)
        assert again.communicate(timeout=LONGEST_S)[0] == out.replace("1 ", "0 ", 1)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(killed.pid, signal.SIGKILL)  # the surviving compiler


def test_a_repeatedly_killed_build_never_leaves_a_broken_library(folder: Path) -> None:
    for tenths in range(1, 10):
        process = _start(folder, 0.1)
        time.sleep(0.1 * tenths + 0.4)
        process.kill()
        _wait_for_the_end(process)
    process = _start(folder, 0)
    out, err = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, err
    path = out.split()[1]
    subprocess.run([sys.executable, "-c", f"import torch, ctypes; ctypes.CDLL({path!r}).a()"], check=True)
