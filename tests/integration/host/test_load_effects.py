"""What loading a bundle changes in the process that loads it: nothing that docs/reference/host.md does not list."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opwright.host.install import install_host

if TYPE_CHECKING:
    from tests.integration.host.conftest import Compiled


@pytest.fixture(scope="module")
def load_effects(compiled: Compiled) -> Path:
    installed = install_host()
    library = (f"-L{installed / 'lib'}", f"-Wl,-rpath,{installed / 'lib'}", "-lopwright_host")
    return compiled("load_effects", ["tests/load_effects.cpp"], "-I", installed / "include", *library)


def _effects(program: Path, *words: str | Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run([program, *words], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_loading_does_not_change_the_process(load_effects: Path, any_bundle: Path) -> None:
    assert _effects(load_effects, any_bundle) == ""


@pytest.mark.parametrize("folder", ["/nowhere", ""])
def test_a_package_loads_without_changing_the_environment_if_tmpdir_is_not_writable(
    load_effects: Path, aoti: Path, folder: str
) -> None:
    assert _effects(load_effects, aoti, TMPDIR=folder) == ""


def test_a_planted_change_is_found(load_effects: Path, torchscript: Path) -> None:
    changed = _effects(load_effects, "--plant", torchscript)
    assert changed.startswith("environment: ")
    assert "OPWRIGHT_PLANTED=1" in changed
    assert changed.count("\n") == 1


def test_an_unpacked_package_is_removed_with_its_model(load_effects: Path, aoti: Path, tmp_path: Path) -> None:
    _effects(load_effects, aoti, TMPDIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_process_without_standard_error_remains_without_it(load_effects: Path, torchscript: Path) -> None:
    done = subprocess.run(["sh", "-c", '"$0" "$1" 2>&-', load_effects, torchscript], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
