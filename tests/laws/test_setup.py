"""The set-up: its lists give reasons, its pins cover all requirements, and its errors are explained."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SCRIPTS = [ROOT / "setup/setup.sh", ROOT / ".ci/run"]


def significant_lines(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def pins() -> list[Requirement]:
    return [Requirement(line) for line in significant_lines(ROOT / "constraints.txt")]


def asked_for() -> set[str]:
    """Returns the names in pyproject.toml's lists (tomllib requires a newer Python than the oldest supported one)."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lists = re.findall(
        r"^(?:requires|dependencies|plots|demo|examples|dev) = \[(.*?)\]$", project, re.MULTILINE | re.DOTALL
    )
    found: set[str] = {
        canonicalize_name(Requirement(text).name) for body in lists for text in re.findall(r'"([^"]+)"', body)
    }
    return found - {"opwright", "setuptools"}  # PyTorch determines the version of setuptools


def copy_of_setup(folder: Path) -> Path:
    for name in ("setup", "pyproject.toml", "constraints.txt"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    return folder / "setup/setup.sh"


def run_setup(script: Path, *, programs: dict[str, str] | None = None, **environment: str) -> tuple[int, str]:
    """Runs a set-up script, with these shell programs first on PATH."""
    folder = script.parents[1] / "programs"
    folder.mkdir(exist_ok=True)
    for name, body in (programs or {}).items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name not in {"FOR", "VENV", "TORCH"}}
    done = subprocess.run(
        ["bash", str(script)],
        env={**inherited, "PATH": f"{folder}:{os.environ['PATH']}", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


# A machine on which apt has nothing to install.
ALL_INSTALLED = {"dpkg-query": r"""for name; do printf 'installed %s\n' "$name"; done"""}


def test_every_system_package_has_a_reason() -> None:
    lines = significant_lines(ROOT / "setup/system-packages.txt")
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9.+-]+ +(dev +)?# .{10,}", line)] == []


def test_every_requirement_is_pinned_exactly_once_for_each_python() -> None:
    assert {"torch", "hatchling", "pytest", "ninja", "numpy"} <= asked_for()
    assert asked_for() - {canonicalize_name(pin.name) for pin in pins()} == set()
    for python in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        names = [pin.name for pin in pins() if not pin.marker or pin.marker.evaluate({"python_version": python})]
        assert len(names) == len(set(names)), python
    assert [str(pin) for pin in pins() if not re.fullmatch(r"==[^*,]+", str(pin.specifier))] == []


@pytest.mark.skipif(not Path(sys.prefix).name.startswith(".venv"), reason="not run in the project's own .venv")
def test_this_environment_matches_the_pins() -> None:
    wrong = []
    for pin in pins():
        if (pin.marker and not pin.marker.evaluate()) or (pin.name == "torch" and os.environ.get("TORCH")):
            continue
        version = importlib.metadata.version(pin.name)
        if not pin.specifier.contains(version):
            wrong.append(f"{pin.name} is {version}, not {pin.specifier}")
    assert wrong == []


@pytest.mark.skipif(
    "MAKELEVEL" not in os.environ or not (Path(sys.prefix) / "opwright-stamp").exists(),
    reason="not run by make, which has just set up and leaves a second set-up nothing to do",
)
def test_a_second_set_up_does_nothing_and_reports_it() -> None:
    stamp = Path(sys.prefix) / "opwright-stamp"
    before = stamp.stat().st_mtime_ns
    done = subprocess.run(["make", "-C", str(ROOT), "setup"], capture_output=True, text=True, check=True)
    assert f"setup: {Path(sys.prefix).name} is up to date" in done.stdout
    assert stamp.stat().st_mtime_ns == before


def test_missing_packages_are_named_without_root_access(tmp_path: Path) -> None:
    programs = {"id": "echo 1000", "sudo": "exit 1", "dpkg-query": r"printf 'installed cmake\n'"}
    code, said = run_setup(copy_of_setup(tmp_path), programs=programs)
    assert code == 1
    assert "As root, run:" in said
    command = next(line for line in said.splitlines() if "apt-get install" in line)
    assert {"g++", "libopencv-dev", "git"} <= set(command.split())
    assert "cmake" not in command.split()
    assert not (tmp_path / ".venv").exists()


def test_the_demo_needs_fewer_packages_than_the_tests(tmp_path: Path) -> None:
    script = copy_of_setup(tmp_path)
    programs = {"id": "echo 1000", "sudo": "exit 1", "dpkg-query": ":"}
    asked = {}
    for purpose in ("demo", "dev"):
        code, said = run_setup(script, programs=programs, FOR=purpose)
        assert code == 1
        asked[purpose] = set(said.partition("--no-install-recommends")[2].splitlines()[0].split())
    assert {"g++", "cmake", "libopencv-dev"} <= asked["demo"]
    assert asked["dev"] - asked["demo"] == {"ccache", "gdb", "git"}
    code, said = run_setup(script, FOR="everything")
    assert code == 1
    assert "FOR is 'everything'; expected demo or dev." in said


@pytest.mark.sample(of="set-ups")
def test_missing_packages_are_installed_with_sudo_if_it_works(tmp_path: Path) -> None:
    log = tmp_path / "log"
    programs = {"id": "echo 1000", "sudo": f'echo "$*" >> {log}', "dpkg-query": r"printf 'installed cmake\n'"}
    run_setup(copy_of_setup(tmp_path), programs=programs, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    asked, update, install = log.read_text(encoding="utf-8").splitlines()
    assert asked == "-n true"
    assert update.endswith("update")
    assert {"DEBIAN_FRONTEND=noninteractive", "--no-install-recommends", "g++"} <= set(install.split())


def test_an_old_python_is_rejected_with_its_version_and_path(tmp_path: Path) -> None:
    programs = {"python3": r"printf '3.9.2\n/opt/old/python3.9\nyes\nyes\nyes\n'"}
    code, said = run_setup(copy_of_setup(tmp_path), programs=programs)
    assert code == 1
    assert "python3 is /opt/old/python3.9 (3.9.2); opwright requires Python 3.10 or newer" in said


def test_a_free_threaded_python_is_rejected(tmp_path: Path) -> None:
    programs = {"python3": r"printf '3.14.0\n/opt/python3.14t\nyes\nyes\nno\n'"}
    code, said = run_setup(copy_of_setup(tmp_path), programs=programs)
    assert code == 1
    assert "python3 is /opt/python3.14t (3.14.0), a free-threaded build, which opwright does not support." in said


@pytest.mark.parametrize(("facts", "lack"), [("no\nyes", "no venv or no ensurepip"), ("yes\nno", "has no Python.h")])
def test_an_incomplete_python_that_apt_cannot_complete_is_rejected(tmp_path: Path, facts: str, lack: str) -> None:
    answer = f"3.12.1\n/opt/own/python3.12\n{facts}\nyes\n".replace("\n", r"\n")
    code, said = run_setup(copy_of_setup(tmp_path), programs={**ALL_INSTALLED, "python3": f"printf '{answer}'"})
    assert code == 1
    assert "/opt/own/python3.12 (3.12.1)" in said
    assert lack in said
    assert "another first on PATH" in said


@pytest.mark.parametrize("torch", ["latest", "2.15/../x", "2.15 ; true"])
def test_a_torch_that_is_not_a_version_is_rejected(tmp_path: Path, torch: str) -> None:
    code, said = run_setup(copy_of_setup(tmp_path), TORCH=torch)
    assert code == 1
    assert f"TORCH is '{torch}'; expected a version of PyTorch, as in TORCH=2.15.0" in said


@pytest.mark.sample(of="set-ups")
def test_an_incomplete_environment_is_created_again(tmp_path: Path) -> None:
    script = copy_of_setup(tmp_path)
    nothing_to_get = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    code, said = run_setup(script, programs=ALL_INSTALLED, **nothing_to_get)
    assert code == 1
    assert "pip could not install the Python packages; the output is above. Run make again to start over." in said
    assert (tmp_path / ".venv/bin/python").exists()
    (tmp_path / ".venv/left-over").touch()
    code, said = run_setup(script, programs=ALL_INSTALLED, **nothing_to_get)
    assert code == 1
    assert "creating .venv" in said
    assert not (tmp_path / ".venv/left-over").exists()


# The words of apt and pip, as they print them.
@pytest.mark.parametrize(
    ("complaint", "cause"),
    [
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "the disk is full. Free: "),
        ("dpkg: error: cannot copy extracted data: No space left on device", "the disk is full. Free: "),
        ("Err:1 http://deb.example trixie InRelease\n  Temporary failure resolving 'deb.example'", "cannot be reached"),
        ("W: Failed to fetch http://deb.example/x.deb  Could not connect to deb.example:80", "cannot be reached"),
        ("E: Unable to locate package libopencv-dev", "the output is above. Run make again"),
    ],
)
def test_an_error_of_apt_has_a_cause(tmp_path: Path, complaint: str, cause: str) -> None:
    programs = {"id": "echo 0", "dpkg-query": ":", "apt-get": f'printf "{complaint}\n"; exit 100'}
    code, said = run_setup(copy_of_setup(tmp_path), programs=programs)
    assert code == 1
    last = said[said.index("apt could not install ") :]
    assert cause in last
    assert complaint.splitlines()[-1] in said


@pytest.mark.sample(of="set-ups")
def test_without_a_network_the_set_up_says_so(tmp_path: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1", "PIP_FIND_LINKS": ""}
    code, said = run_setup(copy_of_setup(tmp_path), programs=ALL_INSTALLED, PIP_CONFIG_FILE="/dev/null", **nowhere)
    assert code == 1
    assert "By default, pip takes PyTorch's CUDA build: a download of 3 GB" in said
    assert "pip could not install the Python packages: a package server cannot be reached" in said


@pytest.mark.sample(of="set-ups")
@pytest.mark.needs("mount")
def test_on_a_full_disk_the_set_up_says_so(tmp_path: Path) -> None:
    script = copy_of_setup(tmp_path)
    (tmp_path / ".venv").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", tmp_path / ".venv"], check=True)
    try:
        code, said = run_setup(script, programs=ALL_INSTALLED)
    finally:
        subprocess.run(["umount", tmp_path / ".venv"], check=True)
    assert code == 1
    assert "setup: the virtual environment could not be created: the disk is full. Free: " in said
    assert "with PyTorch's CUDA build" in said


@pytest.mark.needs("shellcheck")
def test_the_scripts_pass_shellcheck() -> None:
    subprocess.run(["shellcheck", *map(str, SCRIPTS)], check=True)


def test_every_command_of_the_makefile_is_explained_by_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE))
    said = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    assert {"setup", "demo", "test", "lint", "format", "clean"} <= targets
    assert [name for name in sorted(targets) if not re.search(rf"^  make {name} +\w", said, re.MULTILINE)] == []
