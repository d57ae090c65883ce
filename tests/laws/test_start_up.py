"""The modules that a verb imports before it works, which determine how fast the command line starts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

OPWRIGHT = Path(sys.executable).with_name("opwright")
VERBS = ("new", "build", "check", "bench", "ship", "migrate", "verify", "run", "map", "cache", "doctor")
HEAVY = {
    *("torch", "numpy", "matplotlib", "jinja2", "rich", "elftools", "filelock", "ninja", "platformdirs", "pydantic"),
    *("pyarrow", "fsspec", "ray"),
}
# The templates of a new library require it.
OF_NEW = {"jinja2"}


def imported(*arguments: str | Path, program: Path = OPWRIGHT) -> set[str]:
    """The top-level packages that a run of the installed program imports."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", program, *arguments], capture_output=True, text=True, check=False
    )
    modules = re.findall(r"^import time:.*\| +(\S+)$", ended.stderr, flags=re.MULTILINE)
    assert "opwright" in modules, ended.stderr
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("arguments", [("--help",), *((verb, "--help") for verb in VERBS)], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert imported(*arguments) & HEAVY == set()


@pytest.mark.parametrize("flavour", [(), ("--cuda",), ("--opencv",), ("--python-only",)])
def test_new_imports_no_heavy_module_except_for_its_templates(tmp_path: Path, flavour: tuple[str, ...]) -> None:
    assert imported("new", tmp_path / "mine", *flavour) & HEAVY == OF_NEW
    assert (tmp_path / "mine" / "op.py").is_file()


@pytest.mark.parametrize("verb", ["verify", "run"])
def test_an_error_of_a_verb_imports_neither_torch_nor_a_console(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert imported(verb, tmp_path) & HEAVY <= {"platformdirs"}


def test_the_check_for_a_module_detects_an_import(tmp_path: Path) -> None:
    program = tmp_path / "opwright"
    program.write_text("import numpy.linalg\nimport opwright.spec.derive\n")
    assert {"torch", "numpy"} <= imported(program=program)


# A Python of a Ray cluster on which only Ray Data's requirements are installed.
_OF_WORKERS = """
import sys

LACKING = {"torch", "msgspec", "rich", "click", "filelock", "platformdirs", "ninja", "jinja2"}

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LACKING:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
from opwright.scale.engines.ray import ShardActor
from opwright.scale.engines.travelling_bundle import TravellingBundle
from opwright.scale.facts.bundle_facts import BundleFacts
from opwright.scale.results.destination import Destination
from opwright.scale.workers.host_command import host_command
from opwright.scale.workers.host_process import HostProcess
"""


def test_a_worker_of_a_map_requires_only_numpy_pyarrow_and_fsspec() -> None:
    ended = subprocess.run([sys.executable, "-c", _OF_WORKERS], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_check_for_workers_detects_a_missing_module() -> None:
    program = f"{_OF_WORKERS}\nimport opwright.bundle.format.read\n"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "no module named 'msgspec'" in ended.stderr
