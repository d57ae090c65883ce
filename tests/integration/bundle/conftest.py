"""Bundles that several tests use, shipped once by the command line."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from opwright.bundle.format.read import read_manifest
from tests.interpreter import python

if TYPE_CHECKING:
    from opwright.bundle.format.manifest import Manifest
    from tests.integration.conftest import BuildOnce

MODELS = Path(__file__).parent / "models.py"
PACKAGES = Path(__file__).parents[2] / "packages"


@dataclass(frozen=True)
class Bundle:
    """A bundle, and the output of the command on its two streams."""

    path: Path
    out: str
    said: str

    @property
    def manifest(self) -> Manifest:
        return read_manifest((self.path / "manifest.json").read_bytes())


class ShipOnce(Protocol):
    """Ships with these arguments, once per session; `{folder}` in a variable is a new folder."""

    def __call__(self, name: str, *arguments: str, **environment: str) -> Bundle: ...


def command(*arguments: str) -> list[str]:
    return [*python(), "-m", "opwright", "ship", *arguments]


@pytest.fixture(scope="session")
def ship_once(build_once: BuildOnce) -> ShipOnce:
    def ship_once(name: str, *arguments: str, **environment: str) -> Bundle:
        def make(folder: Path) -> None:
            done = subprocess.run(
                command(*arguments, "-o", str(folder / "bundle")),
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, **{name: value.format(folder=folder) for name, value in environment.items()}},
            )
            assert done.returncode == 0, done.stderr
            (folder / "out").write_text(done.stdout)
            (folder / "said").write_text(done.stderr)

        folder = build_once(f"bundle-{name}", make)
        return Bundle(folder / "bundle", (folder / "out").read_text(), (folder / "said").read_text())

    return ship_once


@pytest.fixture(scope="session")
def scripted(ship_once: ShipOnce) -> Bundle:
    """The model `net` in TorchScript."""
    return ship_once("scripted", f"{MODELS}:net", "--ops", str(PACKAGES / "timed"))


# A separate cache, which a test may empty, and a separate folder for temporary files.
OF_PACKAGES = {"OPWRIGHT_CACHE": "{folder}/cache", "TMPDIR": "{folder}"}


@pytest.fixture(scope="session")
def packaged(ship_once: ShipOnce) -> Bundle:
    """The model `net` in an AOTInductor package."""
    timed = str(PACKAGES / "timed")
    return ship_once("packaged", f"{MODELS}:net", "--ops", timed, "--format", "aoti", **OF_PACKAGES)
