"""The process that starts a check imports neither torch nor the code of the processes that it starts."""

from __future__ import annotations

import subprocess
import sys

PARENT = "opwright.checker.check"
CHILD = "opwright.checker.processes.worker"
# Modules that both processes import.
SHARED = ("opwright.checker.job", "opwright.checker.runtime_table", "opwright.checker.watcher")


def imported(module: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after importing one."""
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_parent_of_a_check_imports_neither_torch_nor_the_child() -> None:
    modules = imported(PARENT)
    assert {PARENT, *SHARED} <= modules
    assert modules & {"torch", "numpy", CHILD, "opwright.checker.subject"} == set()
    rooms = tuple(f"opwright.checker.{room}" for room in ("cases", "behavior", "models", "runtimes"))
    assert [name for name in modules if name.startswith(rooms)] == []


def test_the_child_imports_both_so_the_test_can_detect_them() -> None:
    assert {"torch", CHILD, "opwright.checker.subject"} <= imported(CHILD)
