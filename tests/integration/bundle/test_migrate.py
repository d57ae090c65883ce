"""`opwright migrate`: a TorchScript model with available source, converted to the other format."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from opwright.bundle.format.read import read_manifest
from opwright.host.install import host_program
from tests.integration.bundle.conftest import MODELS, PACKAGES
from tests.interpreter import python

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce

TIMED = PACKAGES / "timed"
# The files of an earlier release of a service, with weights that no source contains.
MAKE = f"""
import sys

import torch

import opwright

opwright.open({str(TIMED)!r})
sys.path.insert(0, {str(MODELS.parent)!r})
import models
torch.manual_seed(7)
model = models.Net().eval()
scripted = torch.jit.script(model)
scripted.save("old.pt")
torch.jit.freeze(scripted).save("frozen.pt")
torch.save(model.state_dict(), "weights.pth")
torch.jit.script(models.Plain().eval()).save("other.pt")
torch.export.save(torch.export.export(models.Plain().eval(), (torch.zeros(2, 3, 8, 8),)), "exported.pt2")
"""


@pytest.fixture(scope="session")
def old(build_once: BuildOnce) -> Path:
    def make(folder: Path) -> None:
        done = subprocess.run([*python(), "-c", MAKE], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return build_once("migrate", make)


def migrate(saved: Path, output: Path, *more: str, source: str = "net") -> subprocess.CompletedProcess[str]:
    command = [*python(), "-m", "opwright", "migrate", str(saved), "--source", f"{MODELS}:{source}"]
    return subprocess.run(
        [*command, "--ops", str(TIMED), "-o", str(output), *more], capture_output=True, text=True, check=False
    )


@pytest.mark.sample(of="packages")
def test_a_package_returns_what_the_torchscript_model_returned(old: Path, tmp_path: Path) -> None:
    done = migrate(old / "old.pt", tmp_path / "bundle", "--json", str(tmp_path / "said.json"))
    assert done.returncode == 0, done.stderr
    manifest = read_manifest((tmp_path / "bundle" / "manifest.json").read_bytes())
    assert manifest.model.kind == "aoti"
    by_output = json.loads((tmp_path / "said.json").read_text())["differences_by_output"]
    assert by_output["the source"] == {"scores": 0.0, "mixed": 0.0}
    assert {name: found < 1e-5 for name, found in by_output["AOTInductor"].items()} == {"scores": True, "mixed": True}
    verified = subprocess.run([host_program(), tmp_path / "bundle", "--verify"], check=False)
    assert verified.returncode == 0
    # The goldens contain the old weights, which a new module does not have.
    loaded = torch.load(old / "weights.pth", weights_only=True)
    _, (scores, _), _ = torch.load(tmp_path / "bundle" / manifest.goldens[0], weights_only=True)
    assert (scores - loaded["head.bias"]).abs().max() < 10


def test_a_frozen_model_receives_its_weights_from_a_file(old: Path, tmp_path: Path) -> None:
    refused = migrate(old / "frozen.pt", tmp_path / "bundle")
    assert refused.returncode == 8
    assert "frozen.pt is frozen, so its weights have no names: pass them with --weights" in refused.stderr
    assert not (tmp_path / "bundle").exists()
    given = ("--weights", str(old / "weights.pth"), "--format", "torchscript")
    done = migrate(old / "frozen.pt", tmp_path / "bundle", *given)
    assert done.returncode == 0, done.stderr
    assert "the source" in done.stdout


@pytest.mark.parametrize(
    ("saved", "more", "said"),
    [
        ("nowhere.pt", (), "nowhere.pt does not exist: expected a TorchScript model, as torch.jit.save writes it"),
        ("exported.pt2", (), "exported.pt2 is an exported program, not TorchScript: `opwright ship` ships it"),
        ("other.pt", (), "other.pt do not match the model:"),
        ("other.pt", ("--weights", "weights.pth"), "the source changes the results (sample 0): "),
    ],
)
def test_a_model_from_another_source_is_rejected(
    old: Path, tmp_path: Path, saved: str, more: tuple[str, ...], said: str
) -> None:
    absolute = [str(old / word) if word.endswith(".pth") else word for word in more]
    done = migrate(old / saved, tmp_path / "bundle", *absolute)
    assert done.returncode == 8
    assert said in done.stderr
    assert not (tmp_path / "bundle").exists()
