"""Daemon threads when the process exits."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")

PROGRAM = """\
import threading
from opwright.scale import daemon

daemon._PATIENCE_S = {patience_s}
never = threading.Event()

def finish():
    threading.main_thread().join()
    print("finished", flush=True)

{call}
print("exits", flush=True)
"""


def output_of(call: str, patience_s: float) -> str:
    command = [sys.executable, "-c", PROGRAM.format(call=call, patience_s=patience_s)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def test_a_process_waits_for_a_thread_that_finishes() -> None:
    assert output_of("daemon.in_daemon_thread(finish, 'finish')", 600) == "exits\nfinished\n"


def test_a_process_exits_despite_a_thread_that_waits_forever() -> None:
    assert output_of("daemon.in_daemon_thread(never.wait, 'wait')", 0.1) == "exits\n"
