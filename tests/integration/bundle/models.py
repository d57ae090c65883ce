"""Small models to ship, with pictures (N, 3, H, W) in float32 as inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterator

shapes = {"image": "1..16,3,8,8"}
images = {"image": {"resize": 8, "crop": (8, 8), "mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2)}}


def samples() -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(0)
    for count in (2, 3):
        yield torch.randn(count, 3, 8, 8, generator=generator)


class Net(nn.Module):
    """A convolution of the output of an operator of the library `timed`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 5)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        mixed = torch.ops.timed.mixed(image, image)
        features = torch.relu(self.norm(self.conv(mixed)))
        return {"scores": self.head(features.mean((2, 3))), "mixed": mixed}


class Plain(nn.Module):
    """Uses only PyTorch's own operators."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, image: Tensor) -> Tensor:
        return torch.relu(self.conv(image)).flatten(1)


class Unscriptable(Plain):
    """Can be traced, but not scripted."""

    def forward(self, image: Tensor, *_: object) -> Tensor:
        return super().forward(image)


class Branching(nn.Module):
    """A trace is wrong: the branch depends on the number of pictures."""

    def forward(self, image: Tensor, *_: object) -> Tensor:
        return image + 1 if len(image) > 2 else image * 3


class DecidingOnValues(nn.Module):
    """A trace is wrong, but no sample shows it: the branch depends on the values."""

    def forward(self, image: Tensor, *_: object) -> Tensor:
        return image + 1 if image.sum() > -1e9 else image * 3


class BranchingOnSizes(nn.Module):
    """An export narrows the sizes to those of one branch."""

    def forward(self, image: Tensor) -> Tensor:
        return image + 1 if image.shape[0] > 4 else image * 3


class BranchingOnOneSize(nn.Module):
    """An export is wrong at one size in the middle of the range."""

    def forward(self, image: Tensor) -> Tensor:
        return image + 1 if image.shape[0] == 4 else image * 3


class Counting(nn.Module):
    """An export fixes the size."""

    def forward(self, image: Tensor) -> Tensor:
        return torch.stack([image[number] + number for number in range(image.shape[0])])


class BranchingOnValues(nn.Module):
    """Cannot be exported."""

    def forward(self, image: Tensor) -> Tensor:
        return image + 1 if image.sum() > 0 else image * 3


class Fragile(nn.Module):
    """Changes when the norm is folded into the convolution: it computes a difference of nearly equal numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(1, eps=1e-20)
        nn.init.constant_(self.conv.weight, 1 / 3)
        for buffer, value in ((self.norm.running_mean, 1.0), (self.norm.running_var, 1e-16)):
            if buffer is not None:
                buffer.fill_(value)

    def forward(self, image: Tensor) -> Tensor:
        result: Tensor = self.norm(self.conv(1 + image * 1e-6))
        return result


class Calls(nn.Module):
    """Calls an operator without a native kernel."""

    def forward(self, image: Tensor) -> Tensor:
        result: Tensor = torch.ops.half_native.only_described(image)
        return result


def _seeded(model: type[nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return model()


def net() -> nn.Module:
    return _seeded(Net)


def plain() -> nn.Module:
    return _seeded(Plain)


def unscriptable() -> nn.Module:
    return _seeded(Unscriptable)


class Added(nn.Module):
    """Two inputs that must have the same number of rows."""

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        return one * 2 + other
