from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from opwright.errors import BuildError, ToolchainError
from opwright.toolchain.run import TimeLimit, run


def test_both_streams_are_captured_in_order_and_reported_by_line() -> None:
    lines: list[str] = []
    program = "import sys; print('a', flush=True); print('b', file=sys.stderr, flush=True); print('c')"
    completed = run([sys.executable, "-c", program], on_line=lines.append)
    assert completed.output == "a\nb\nc\n"
    assert lines == ["a", "b", "c"]
    assert completed.exit_code == 0


def test_a_failure_shows_the_command_and_the_first_error() -> None:
    program = "print('x.cpp:1:2: error: no such thing'); raise SystemExit(3)"
    with pytest.raises(BuildError, match=r"x\.cpp:1:2: error: no such thing\nThe command exited with 3:\n") as caught:
        run([sys.executable, "-c", program])
    assert caught.value.command.startswith(sys.executable)
    assert caught.value.output == "x.cpp:1:2: error: no such thing\n"


def test_the_error_names_the_signal_that_killed_a_program() -> None:
    with pytest.raises(BuildError, match="was killed by SIGKILL"):
        run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])


def test_the_error_for_a_missing_program_mentions_opwright_doctor() -> None:
    with pytest.raises(ToolchainError, match=r"no-such-compiler cannot be run: No such file.*opwright doctor"):
        run(["no-such-compiler"])


def test_variables_are_added_to_the_environment() -> None:
    program = "import os; print(os.environ['MINE'], 'PATH' in os.environ)"
    assert run([sys.executable, "-c", program], env={"MINE": "yes"}).output == "yes True\n"


def test_a_program_that_exceeds_its_time_limit_is_killed_with_its_children(tmp_path: Path) -> None:
    # The child keeps the pipe open: if only its parent were killed, reading would continue.
    pid = tmp_path / "pid"
    child = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(99)"
    parent = f"import subprocess, sys; print('begun', flush=True); subprocess.run([sys.executable, '-c', {child!r}])"
    started = time.monotonic()
    completed = run([sys.executable, "-c", parent], check=False, timeout_s=2)
    assert time.monotonic() - started < 20
    assert completed.timed_out
    assert (completed.output, completed.exit_code) == ("begun\n", -9)
    assert not is_running(int(pid.read_text()))


def test_a_program_that_closes_its_streams_and_keeps_running_is_killed() -> None:
    closed = "import os, time; os.close(1); os.close(2); time.sleep(99)"
    assert run([sys.executable, "-c", closed], check=False, timeout_s=2).timed_out


def test_a_program_that_exits_in_time_does_not_time_out() -> None:
    completed = run([sys.executable, "-c", "print('a')"], timeout_s=60)
    assert (completed.output, completed.exit_code, completed.timed_out) == ("a\n", 0, False)
    assert not run([sys.executable, "-c", ""]).timed_out


def test_the_error_names_the_time_limit_as_the_reason() -> None:
    with pytest.raises(BuildError, match="The command was killed at its time limit"):
        run([sys.executable, "-c", "import time; time.sleep(99)"], timeout_s=TimeLimit(0.5))


def test_a_time_limit_restarts_when_a_program_makes_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limit = TimeLimit(60)
    now = 150.0
    assert limit.left_s == 10
    limit.restart()
    assert limit.left_s == 60
    now = 211.0
    assert limit.left_s == -1


def test_an_exception_in_the_line_callback_leaves_no_program_running() -> None:
    def refuse(line: str) -> None:
        raise KeyboardInterrupt(line)

    program = "import os, time; print(os.getpid(), flush=True); time.sleep(99)"
    with pytest.raises(KeyboardInterrupt) as caught:
        run([sys.executable, "-c", program], on_line=refuse, timeout_s=90)
    assert not is_running(int(str(caught.value)))


def is_running(process: int) -> bool:
    """Whether a process still runs, and is not a zombie, within at most a second."""
    until = time.monotonic() + 1
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True
