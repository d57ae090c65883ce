"""The training example: both kernels learn with the same losses, and two processes compute the gradients of one."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce

pytestmark = pytest.mark.sample(of="long", by="file")

SCRIPT = Path(__file__).parents[2] / "examples" / "train_digits.py"
STEPS = 22  # of an epoch: 1437 images in batches of 64
KERNELS = {"reference", "native"}


def run(*arguments: str | Path, launcher: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *launcher, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Trained:
    """The files that a complete training run wrote to a folder."""

    folder: Path

    @property
    def figures(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "figures.json").read_text()))

    @property
    def printed(self) -> str:
        return (self.folder / "printed").read_text()


@pytest.fixture(scope="module")
def trained(build_once: BuildOnce) -> Trained:
    def make(folder: Path) -> None:
        done = run("--json", folder / "figures.json", "--plot", folder / "losses.png")
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "printed").write_text(done.stdout + done.stderr)

    return Trained(build_once("train_digits", make))


def test_both_kernels_learn_to_read_digits_equally(trained: Trained) -> None:
    figures = trained.figures
    assert figures["processes"] == 1
    assert figures["accuracy"].keys() == figures["losses"].keys() == KERNELS
    assert min(figures["accuracy"].values()) >= 0.95
    reference, native = figures["losses"]["reference"], figures["losses"]["native"]
    assert len(reference) == len(native) == 30 * STEPS
    assert native[:100] == pytest.approx(reference[:100], rel=1e-4)
    assert figures["loss_difference"] == max(abs(r - n) / r for r, n in zip(reference[:100], native[:100], strict=True))
    # If both kernels were the same, they would not differ at all.
    assert 0 < figures["loss_difference"] < 1e-4
    assert sum(native[-STEPS:]) < sum(native[:STEPS]) / 100


def test_the_table_and_the_plot_have_no_colours_in_a_pipe(trained: Trained) -> None:
    printed, picture = trained.printed, trained.folder / "losses.png"
    for text in (
        "Handwritten digits, row by row: one process on",
        "test accuracy",
        "over the first 100 steps",
        "epoch 30/30",
    ):
        assert text in printed
    assert re.search(rf"reference / native .* {trained.figures['ratio']:.2f} │\n", printed)
    assert "\x1b" not in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_two_processes_compute_the_gradients_of_one_and_a_failed_check_sets_the_exit_code(
    tmp_path: Path, trained: Trained
) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = run("--epochs", "5", "--json", tmp_path / "figures.json", launcher=launcher)
    # Five epochs are too few; everything else is correct.
    assert done.returncode == 1
    assert "the test accuracy by native kernels is" in done.stderr
    assert "differ by" not in done.stderr
    assert "2 processes on" in done.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["processes"] == 2
    assert figures["gradient_difference"].keys() == KERNELS
    # Sums in another order: equal except for rounding, and not the same object.
    assert all(0 < difference < 1e-5 for difference in figures["gradient_difference"].values())
    assert figures["losses"]["native"][0] == pytest.approx(trained.figures["losses"]["native"][0], rel=1e-5)
    assert figures["losses"]["native"][:100] == pytest.approx(figures["losses"]["reference"][:100], rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epochs", "0"), "argument --epochs: expected 1 or more, got 0"),
        (("--json", "nowhere/figures.json"), "argument --json: the folder nowhere does not exist"),
        (("--plot", "."), "argument --plot: . is a folder"),
        (("--plot", "losses.gif"), "argument --plot: losses.gif must end in one of .png, .svg, .pdf"),
    ],
)
def test_usage_errors_are_reported_before_the_training(
    arguments: tuple[str, str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    with pytest.raises(SystemExit, match=r"^2$"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert capsys.readouterr().err.endswith(f"train_digits.py: error: {message}\n")


def test_unequal_shares_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(SystemExit, match=r"^a batch of 64 cannot be split equally among 3 processes: use a divisor"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
