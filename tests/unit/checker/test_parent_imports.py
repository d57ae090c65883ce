"""The process that starts a check imports neither torch nor the code of the processes that it starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

PARENT = "opwright.checker.check"
CHILD = "opwright.checker.processes.worker"


def imported(module: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after importing one."""
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_parent_of_a_check_imports_neither_torch_nor_the_child() -> None:
    modules = imported(PARENT)
    assert PARENT in modules
    assert modules & {"torch", "numpy", CHILD, "opwright.checker.subject"} == set()
    rooms = (
        "opwright.checker.cases",
        "opwright.checker.behavior",
        "opwright.checker.models",
        "opwright.checker.runtimes",
    )
    assert [name for name in modules if name.startswith(rooms)] == []


@pytest.mark.parametrize(
    "module", ["opwright.checker.job", "opwright.checker.runtime_table", "opwright.checker.watcher"]
)
def test_modules_that_both_processes_share_do_not_import_torch(module: str) -> None:
    assert "torch" not in imported(module)


def test_the_child_imports_both_so_the_test_can_detect_them() -> None:
    assert {"torch", CHILD, "opwright.checker.subject"} <= imported(CHILD)
