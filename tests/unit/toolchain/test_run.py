from __future__ import annotations

import sys

import pytest

from opwright.errors import BuildError, ToolchainError
from opwright.toolchain.run import run


def test_both_streams_are_kept_in_order_and_lines_are_followed() -> None:
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


def test_a_program_that_a_signal_ended_says_so() -> None:
    with pytest.raises(BuildError, match="was ended by signal 9"):
        run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])


def test_a_missing_program_names_the_doctor() -> None:
    with pytest.raises(ToolchainError, match=r"no-such-compiler cannot be run: No such file.*opwright doctor"):
        run(["no-such-compiler"])


def test_variables_are_added_to_the_environment() -> None:
    program = "import os; print(os.environ['MINE'], 'PATH' in os.environ)"
    assert run([sys.executable, "-c", program], env={"MINE": "yes"}).output == "yes True\n"
