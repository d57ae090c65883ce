"""The C++ training example: its losses match Python's at every step, in a process without Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import opwright
from tests.integration.conftest import mapped_files
from tests.interpreter import python

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce, Cmake

pytestmark = [pytest.mark.needs("cmake"), pytest.mark.sample(of="long", by="file")]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cpp_training"
STEPS = 120


@dataclass(frozen=True)
class Training:
    """The folder with the program in `build` and the files that prepare.py saved."""

    folder: Path

    def __call__(self, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "build" / "train", *arguments],
            cwd=self.folder,
            env={**os.environ, **env},
            check=False,
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="module")
def training(build_once: BuildOnce, cmake: Cmake) -> Training:
    def make(folder: Path) -> None:
        built = cmake(EXAMPLE, folder / "build")
        assert built.returncode == 0, built.stdout
        assert "warning" not in built.stdout
        command: list[str | Path] = [*python(), EXAMPLE / "prepare.py", folder, "--steps", str(STEPS)]
        prepared = subprocess.run(command, capture_output=True, text=True, check=False)
        assert prepared.returncode == 0, prepared.stderr
        images, labels, batches, *settings = torch.load(folder / "data.pt")
        torch.save([images[:, :, :5], labels, batches, *settings], folder / "narrow.pt")
        torch.save([images, labels, batches + len(images), *settings], folder / "too_far.pt")
        torch.save([images.double(), labels, batches, *settings], folder / "double.pt")
        torch.save([images, labels], folder / "short.pt")
        torch.save([images, labels, batches, "fast", 0.9], folder / "words.pt")
        model = (folder / "model.pt").read_bytes()
        (folder / "cut_off.pt").write_bytes(model[: len(model) // 2])

    return Training(build_once("cpp_training", make))


def test_the_losses_match_python_at_every_step(training: Training, tmp_path: Path) -> None:
    done = training("model.pt", "data.pt", tmp_path / "trained.pt")
    assert (done.returncode, done.stderr) == (0, "")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    losses = [line["loss"] for line in lines]
    assert losses == pytest.approx(json.loads((training.folder / "losses.json").read_text()), rel=1e-5)
    assert sum(losses[-10:]) < sum(losses[:10]) / 2
    assert list(tmp_path.iterdir()) == [tmp_path / "trained.pt"]
    assert_goes_on_from(losses[-1], training, tmp_path / "trained.pt")


def assert_goes_on_from(last: float, training: Training, path: Path) -> None:
    """Check that the saved model is trained: in Python, it classifies the digits better than at the start."""
    opwright.open(ROOT / "ops" / "lltm")
    images, labels, *_ = torch.load(training.folder / "data.pt")
    before, after = (
        float(torch.nn.functional.cross_entropy(torch.jit.load(saved)(images), labels).detach())
        for saved in (training.folder / "model.pt", path)
    )
    assert before == pytest.approx(2.3, abs=0.1)
    assert after == pytest.approx(last, rel=0.5)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("", 2, r"usage: train MODEL\.pt DATA\.pt \[TRAINED\.pt\]"),
        ("model.pt data.pt trained.pt more", 2, r"usage: train MODEL\.pt DATA\.pt \[TRAINED\.pt\]"),
        ("nowhere.pt data.pt", 3, r"model nowhere\.pt cannot be read: .*No such file"),
        ("cut_off.pt data.pt", 3, r"model cut_off\.pt cannot be read: .*failed finding central directory"),
        ("model.pt nowhere.pt", 3, r"data nowhere\.pt cannot be read: does it exist\?"),
        ("model.pt .", 3, r"data \. was not saved by prepare\.py: .*Is a directory"),
        ("model.pt model.pt", 3, r"data model\.pt was not saved by prepare\.py: "),
        (
            "model.pt short.pt",
            3,
            r"data short\.pt was not saved by prepare\.py: expected a list of images, labels, batches, l",
        ),
        (
            "model.pt words.pt",
            3,
            r"data words\.pt was not saved by prepare\.py: expected a list of images, labels, batches, l",
        ),
        ("model.pt narrow.pt", 4, r"training failed: .*with input_size 8, got \[64, 8, 5\]"),
        ("model.pt double.pt", 4, r"training failed: .*weights must .*float64"),
        ("model.pt too_far.pt", 4, r"training failed: .*index out of range"),
        ("model.pt data.pt nowhere/trained.pt", 5, r"the trained model cannot be written to nowhere/trained\.pt: "),
    ],
)
def test_bad_input_prints_one_line_and_returns_an_exit_code(
    training: Training, arguments: str, exit_code: int, message: str
) -> None:
    before = sorted(training.folder.iterdir())
    done = training(*arguments.split())
    assert re.fullmatch(f"train: {message}.*\n", done.stderr), done.stderr
    assert done.returncode == exit_code
    assert sorted(training.folder.iterdir()) == before


def test_unwritable_losses_are_a_failure(training: Training) -> None:
    with Path("/dev/full").open("w") as full:
        command = [training.folder / "build" / "train", training.folder / "model.pt", training.folder / "data.pt"]
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (5, "train: the losses cannot be written\n")


def mapped_by(training: Training, **env: str) -> set[str]:
    done = training("model.pt", "data.pt", LD_DEBUG="files", **env)
    assert done.returncode == 0, done.stderr
    return mapped_files(done.stderr)


def test_the_process_maps_no_libpython_and_this_test_would_detect_it(training: Training, libpython: Path) -> None:
    mapped = mapped_by(training)
    assert {"libtorch_cpu.so", "liblltm.so", "libopwright_autograd.so"} <= mapped
    assert not [name for name in mapped if "python" in name]
    mapped = mapped_by(training, LD_PRELOAD=str(libpython))
    assert [name for name in mapped if "python" in name] == ["libpython3.so"]
