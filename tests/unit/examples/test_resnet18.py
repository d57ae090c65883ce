"""ResNet-18: torchvision's names and shapes, photographs prepared as for its weights, and seeded weights."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "resnet18"))
EXAMPLE: Any = importlib.import_module("resnet18")

# Stand-ins for a torchvision that was built for another torch, and for one that was built for this torch.
OF_ANOTHER_TORCH = 'raise RuntimeError("operator torchvision::nms does not exist")'
OF_THIS_TORCH = """
import torch
from torch import Tensor, nn
class BasicBlock: ...
class ResNet(nn.Module):
    def __init__(self, block, layers):
        super().__init__()
        assert (block, layers) == (BasicBlock, [2, 2, 2, 2])
        self.conv1, self.fc = nn.Conv2d(3, 8, 7, 4), nn.Linear(8, 1000)
    def forward(self, x):
        return self._forward_impl(x)
    def _forward_impl(self, x):
        return self.fc(self.conv1(x).relu().mean(dim=(2, 3)))
"""


@pytest.fixture(scope="module")
def model() -> nn.Module:
    made: nn.Module = EXAMPLE.resnet18()
    return made


@pytest.fixture(scope="module")
def images() -> list[Tensor]:
    return [image for (image,) in EXAMPLE.samples()]


def torchvision_entries() -> dict[str, tuple[int, ...]]:
    """The names and shapes of a state dict that torchvision saves, in order."""

    def norm(name: str, size: int) -> dict[str, tuple[int, ...]]:
        of_channels = ("weight", "bias", "running_mean", "running_var")
        return {f"{name}.{entry}": (size,) for entry in of_channels} | {f"{name}.num_batches_tracked": ()}

    entries = {"conv1.weight": (64, 3, 7, 7), **norm("bn1", 64)}
    for layer, (before, size) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512)), start=1):
        for block, given in enumerate((before, size)):
            name = f"layer{layer}.{block}"
            entries |= {f"{name}.conv1.weight": (size, given, 3, 3), **norm(f"{name}.bn1", size)}
            entries |= {f"{name}.conv2.weight": (size, size, 3, 3), **norm(f"{name}.bn2", size)}
            if given != size:
                entries |= {f"{name}.downsample.0.weight": (size, given, 1, 1), **norm(f"{name}.downsample.1", size)}
    return {**entries, "fc.weight": (1000, 512), "fc.bias": (1000,)}


def test_the_state_dict_matches_torchvision() -> None:
    ours = EXAMPLE.ResNet18()
    state = ours.state_dict()
    assert [(name, tuple(tensor.shape)) for name, tensor in state.items()] == list(torchvision_entries().items())
    assert len(state) == 122
    assert sum(parameter.numel() for parameter in ours.parameters()) == 11_689_512


def test_weights_from_a_file_replace_the_seeded_ones(model: nn.Module, images: list[Tensor], tmp_path: Path) -> None:
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    other = EXAMPLE.ResNet18().eval()
    other.load_state_dict(torch.load(tmp_path / "weights.pth", weights_only=True), strict=True)
    with torch.no_grad():
        assert torch.equal(other(images[1]), model(images[1]))


def test_seeded_weights_distinguish_photographs(model: nn.Module, images: list[Tensor]) -> None:
    assert not model.training
    with torch.no_grad():
        logits = model(torch.cat(images))
    assert 2 < logits.std() < 5
    assert abs(float(logits.mean())) < 0.1
    assert len(set(logits.argmax(dim=1).tolist())) == len(logits)
    first_six = logits.topk(6).values
    # Far more than the effect of summing in another order.
    assert (first_six[:, :-1] - first_six[:, 1:]).min() > 1e-4 * logits.abs().max()


def test_a_scripted_model_has_the_same_top_five_classes(model: nn.Module, images: list[Tensor]) -> None:
    scripted = torch.jit.freeze(torch.jit.script(model))
    with torch.no_grad():
        eager = model(images[0])
        for _ in range(3):  # TorchScript profiles the first calls, and then rewrites the graph
            ours = scripted(images[0])
            assert (eager - ours).abs().max() < 1e-5 * eager.abs().max()
            assert torch.equal(eager.topk(5).indices, ours.topk(5).indices)


def test_samples_match_the_declared_shapes(images: list[Tensor]) -> None:
    shapes = [tuple(image.shape) for image in images]
    assert EXAMPLE.shapes == {"image": "float32[1..16,3,224,224]"}
    assert all(1 <= batch <= 16 and rest == [3, 224, 224] for batch, *rest in shapes)
    assert len({batch for batch, *_ in shapes}) > 1
    assert {image.dtype for image in images} == {torch.float32}


@pytest.mark.parametrize(
    ("height", "width", "resized", "corner"),
    [
        (512, 512, (256, 256), (16, 16)),
        (300, 451, (256, 384), (16, 80)),  # 384.85: truncated
        (640, 427, (383, 256), (80, 16)),  # 79.5: rounded to even
        (427, 640, (256, 383), (16, 80)),
        (257, 259, (256, 257), (16, 16)),  # 16.5: likewise
        (3, 5, (256, 426), (16, 101)),
    ],
)
def test_a_picture_is_resized_cropped_and_normalised_step_by_step(
    height: int, width: int, resized: tuple[int, int], corner: tuple[int, int]
) -> None:
    picture = torch.randint(0, 256, (height, width, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    planes = (picture.float() / 255).permute(2, 0, 1)[None]
    planes = functional.interpolate(planes, resized, mode="bilinear", align_corners=False, antialias=True)
    (top, left), recipe = corner, EXAMPLE.images["image"]
    cut = planes[0, :, top : top + 224, left : left + 224]
    channels = zip(cut, recipe["mean"], recipe["std"], strict=True)
    expected = torch.stack([(plane - mean) / std for plane, mean, std in channels])
    got = EXAMPLE.prepared(picture)
    assert got.shape == (1, 3, 224, 224)
    assert torch.allclose(got[0], expected, rtol=0, atol=1e-6)


def test_without_a_torchvision_for_this_torch_the_weights_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: nn.Module
) -> None:
    stand_in(monkeypatch, tmp_path, OF_ANOTHER_TORCH)
    ours = EXAMPLE.resnet18()
    assert isinstance(ours, EXAMPLE.ResNet18)
    assert all(map(torch.equal, ours.state_dict().values(), model.state_dict().values()))


def test_a_torchvision_for_this_torch_is_used_with_an_input_named_image(
    monkeypatch: pytest.MonkeyPatch, images: list[Tensor], tmp_path: Path
) -> None:
    stand_in(monkeypatch, tmp_path, OF_THIS_TORCH)
    model = EXAMPLE.resnet18()
    assert list(model.state_dict()) == ["conv1.weight", "conv1.bias", "fc.weight", "fc.bias"]
    scripted = torch.jit.script(model)
    assert [argument.name for argument in scripted.forward.schema.arguments] == ["self", "image"]
    assert torch.equal(scripted(images[0]), model(images[0]))


def test_a_different_model_is_detected_by_its_logits_or_its_classes() -> None:
    compared: Any = importlib.import_module("recipe").compared
    logits = torch.arange(10.0)[None]
    assert compared(logits, logits) == 0
    assert compared(logits, logits * (1 + 1e-6)) == pytest.approx(1e-6, rel=0.1)
    for wrong, difference in ((logits * 1.001, "1.0e-03"), (logits / 0, "nan")):
        with pytest.raises(ValueError, match=rf"^the logits differ by {difference} of the largest one; expected at"):
            compared(logits, wrong)
    close = torch.tensor([[1.0, 2, 3, 4, 5, 5.00001]])
    swapped = close[:, [0, 1, 2, 3, 5, 4]]
    with pytest.raises(ValueError, match=r"^the top 5 classes .* are \[\[4, 5, 3, 2, 1\]\]; expected \[\[5, 4, 3"):
        compared(close, swapped)


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path, resnet: str) -> None:
    """Put a stand-in for the package torchvision first on the import path."""
    for place, text in {"__init__.py": "", "models/__init__.py": "", "models/resnet.py": resnet}.items():
        path = folder / "torchvision" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder)
