"""The deployment recipe: a model is scripted and compared, and a minimal C++ program runs the file."""

from __future__ import annotations

import contextlib
import importlib
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce, Cmake

pytestmark = pytest.mark.sample(of="long", by="file")

FOLDER = Path(__file__).parents[2] / "examples" / "resnet18"
sys.path.insert(0, str(FOLDER))
EXAMPLE: Any = importlib.import_module("resnet18")


def recipe(*arguments: str | Path) -> None:
    """Run the script in this process, which has already imported its dependencies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["recipe.py", *map(str, arguments)])
        runpy.run_path(str(FOLDER / "recipe.py"), run_name="__main__")


class Few(nn.Module):
    """Returns three classes, where the program expects five."""

    def forward(self, image: Tensor) -> Tensor:
        return image.mean(dim=(2, 3))


class Narrow(nn.Module):
    """Reshapes the image to a wrong size inside a branch, so that the reported source continues after the error."""

    def forward(self, image: Tensor) -> Tensor:
        if image.size(1) == 3:
            return image.reshape(3, 5)
        return image


class Unheard(nn.Module):
    """Calls an operator that the program does not define."""

    def forward(self, image: Tensor) -> Tensor:
        result: Tensor = torch.ops.unheard.of(image)
        return result


class Pair(nn.Module):
    """Returns two tensors."""

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        return image, image


@dataclass(frozen=True)
class Recipe:
    """The folder with ts-infer in `build`, and models next to it."""

    folder: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [self.folder / "build" / "ts-infer", *arguments]
        return subprocess.run(command, cwd=self.folder, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def followed(build_once: BuildOnce, cmake: Cmake) -> Recipe:
    def make(folder: Path) -> None:
        built = cmake(FOLDER, folder / "build")
        assert built.returncode == 0, built.stdout
        assert "warning" not in built.stdout
        weights = EXAMPLE.resnet18().state_dict()
        torch.save(weights | {"fc.bias": weights["fc.bias"].flip(0)}, folder / "weights.pth")
        with (folder / "printed").open("w") as printed, contextlib.redirect_stdout(printed):
            recipe(folder / "resnet18.pt", "--weights", folder / "weights.pth")
        for model in (Few(), Narrow(), Pair()):
            torch.jit.script(model).save(folder / f"{type(model).__name__.lower()}.pt")
        saved = (folder / "resnet18.pt").read_bytes()
        of_nobody = torch.library.Library("unheard", "DEF")  # until `make` returns
        of_nobody.define("of(Tensor x) -> Tensor")
        torch.jit.script(Unheard()).save(folder / "unheard.pt")
        (folder / "cut_off.pt").write_bytes(saved[: len(saved) // 2])

    return Recipe(build_once("resnet18", make))


@pytest.mark.needs("cmake")
def test_the_saved_model_has_the_given_weights_and_the_next_command_names_them(followed: Recipe) -> None:
    given = torch.load(followed.folder / "weights.pth", weights_only=True)
    saved = torch.jit.load(followed.folder / "resnet18.pt").state_dict()
    assert saved.keys() == given.keys()
    assert all(torch.equal(saved[name], tensor) for name, tensor in given.items())
    *photographs, said, last = (followed.folder / "printed").read_text().splitlines()
    classes = [line for line in photographs if re.fullmatch(r"(\d+: \d+\.\d%( {3}|$)){5}", line)]
    assert len(classes) == sum(len(image) for (image,) in EXAMPLE.samples())
    assert said == f"saved {followed.folder}/resnet18.pt"
    weights = f"--weights {followed.folder}/weights.pth"
    assert last == f"next: opwright ship examples/resnet18/resnet18.py:resnet18 {weights} -o build/resnet18"


@pytest.mark.needs("cmake")
def test_the_program_prints_the_same_classes_of_noise_as_python(followed: Recipe) -> None:
    done = followed("resnet18.pt")
    assert (done.returncode, done.stderr) == (0, "")
    found = [line.split() for line in done.stdout.splitlines()]
    torch.manual_seed(0)
    with torch.no_grad():
        logits = torch.jit.load(followed.folder / "resnet18.pt")(torch.rand(1, 3, 224, 224))
    scores, classes = logits.softmax(dim=1)[0].topk(5)
    assert [int(number) for number, _ in found] == classes.tolist()
    assert [float(score) for _, score in found] == pytest.approx(scores.tolist(), rel=1e-4)


@pytest.mark.needs("cmake")
@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("", 2, r"usage: ts-infer MODEL\.pt"),
        ("few.pt few.pt", 2, r"usage: ts-infer MODEL\.pt"),
        ("nowhere.pt", 3, r"model nowhere\.pt cannot be read: .*No such file"),
        ("build", 3, "model build cannot be read: "),
        ("cut_off.pt", 3, r"model cut_off\.pt cannot be read: .*failed finding central directory"),
        ("unheard.pt", 3, r"model unheard\.pt cannot be read: Unknown builtin op: unheard::of"),
        ("few.pt", 4, r"model few\.pt is not a classifier of images \(N, 3, 224, 224\): .*index k out of range"),
        (
            "narrow.pt",
            4,
            r"model narrow\.pt is not a classifier .*shape '\[3, 5\]' is invalid for input of size 150528",
        ),
        ("pair.pt", 4, r"model pair\.pt is not a classifier .*Expected Tensor but got Tuple"),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(followed: Recipe, arguments: str, exit_code: int, message: str) -> None:
    done = followed(*arguments.split())
    assert re.fullmatch(f"ts-infer: {message}.*\n", done.stderr), done.stderr
    assert (done.returncode, done.stdout) == (exit_code, "")


@pytest.mark.needs("cmake")
def test_classes_that_cannot_be_written_are_a_failure(followed: Recipe) -> None:
    with Path("/dev/full").open("w") as full:
        command = [followed.folder / "build" / "ts-infer", followed.folder / "resnet18.pt"]
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (5, "ts-infer: the classes cannot be written\n")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"fc.bias": torch.zeros(1000)}, "does not contain weights of ResNet-18: .*Missing key"),
        ({"fc.bias": torch.zeros(10)}, "does not contain weights of ResNet-18: .*size mismatch for fc.bias"),
        (Few(), "does not contain weights of ResNet-18: Weights only load failed"),  # code, which safe loading rejects
        (None, "does not contain weights of ResNet-18: .*No such file"),
    ],
)
def test_weights_that_do_not_match_are_rejected_and_nothing_is_saved(
    weights: object, message: str, tmp_path: Path
) -> None:
    if weights is not None:
        torch.save(weights, tmp_path / "weights.pth")
    with pytest.raises(SystemExit, match=rf"^recipe\.py: {tmp_path}/weights\.pth {message}"):
        recipe(tmp_path / "model.pt", "--weights", tmp_path / "weights.pth")
    assert not (tmp_path / "model.pt").exists()
