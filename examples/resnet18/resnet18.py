"""ResNet-18 for photographs, ready to ship: the model, sample inputs, and the preprocessing of images.

    opwright ship examples/resnet18/resnet18.py:resnet18 -o build/resnet18

The network is from He et al., "Deep Residual Learning for Image Recognition", https://arxiv.org/abs/1512.03385. Its
parameters are named as in torchvision, so weights saved from there can be loaded.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from skimage import data
from sklearn.datasets import load_sample_image  # type: ignore[import-untyped]  # it comes without types
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from seeded import seed, spread  # type: ignore[import-not-found]  # on the path since the line above

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASSES = 1000
RESIZE = 256
CROP = 224
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)

# `opwright ship` reads these as well.
shapes = {"image": f"float32[1..16,3,{CROP},{CROP}]"}
images = {"image": {"resize": RESIZE, "crop": (CROP, CROP), "mean": MEAN, "std": STD}}


class Block(nn.Module):
    """Two convolutions and a shortcut, which is also a convolution if the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels_in, H, W) to (N, channels, H / stride, W / stride)."""
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    """Eight blocks between a first convolution and a linear layer: 11,689,512 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.fc = nn.Linear(512, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        """The logits of the classes, (N, 1000), for images (N, 3, H, W) from `prepared`."""
        x = functional.relu(self.bn1(self.conv1(image)))
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


def resnet18() -> nn.Module:
    """Torchvision's ResNet-18 if it can be imported, otherwise the one above, with weights from a seed.

    Replace the weights with `opwright ship --weights FILE`. The seeded weights are untrained, but give each photograph
    a different and similarly confident answer, as trained weights do.
    """
    model = _of_torchvision() or ResNet18()
    pictures = torch.cat([prepared(picture) for picture in photographs().values()])
    seed(model, pictures)
    with torch.no_grad():
        spread(model.fc, model(pictures), deviation=3.0)
    return model


def photographs() -> dict[str, Tensor]:
    """Photographs from scikit-image and scikit-learn, by name: each (H, W, 3), uint8."""
    of_image = {name: getattr(data, name)() for name in ("astronaut", "chelsea", "coffee", "retina", "rocket")}
    of_learn = {name: load_sample_image(f"{name}.jpg") for name in ("china", "flower")}
    return {name: torch.tensor(pixels) for name, pixels in (of_image | of_learn).items()}


def prepared(picture: Tensor) -> Tensor:
    """Convert a photograph (H, W, 3), uint8, to an input of the network: (1, 3, 224, 224), float32. See also `images`.

    The steps are in the same order as in a host without Python, so that both compute the same bits.
    """
    x = picture.permute(2, 0, 1)[None].contiguous().float() / 255
    shorter = min(x.shape[2:])
    sides = [side * RESIZE // shorter for side in x.shape[2:]]
    x = functional.interpolate(x, sides, mode="bilinear", align_corners=False, antialias=True)
    top, left = (round((side - CROP) / 2) for side in sides)
    x = x[:, :, top : top + CROP, left : left + CROP]
    mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (MEAN, STD))
    return (x - mean) / std


def samples() -> Iterator[tuple[Tensor]]:
    """Inputs of the model: two photographs, then a single one, then three others."""
    image = {name: prepared(picture) for name, picture in photographs().items()}
    yield (torch.cat([image["astronaut"], image["coffee"]]),)
    yield (image["chelsea"],)
    yield (torch.cat([image["china"], image["rocket"], image["flower"]]),)


def _of_torchvision() -> nn.Module | None:
    """The same network from torchvision; None if torchvision is missing, or was built for another torch."""
    try:
        resnet = importlib.import_module("torchvision.models.resnet")
    except (ImportError, RuntimeError):  # RuntimeError: its operators were built for another torch
        return None

    class Named(resnet.ResNet):  # type: ignore[misc,name-defined]  # mypy does not see torchvision
        def forward(self, image: Tensor) -> Tensor:  # torchvision calls it x
            logits: Tensor = self._forward_impl(image)
            return logits

    return Named(resnet.BasicBlock, [2, 2, 2, 2])
