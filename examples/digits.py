"""Handwritten digits, and the classifier that the training examples train on them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from sklearn.datasets import load_digits  # type: ignore[import-untyped]  # has no type annotations
from sklearn.model_selection import train_test_split  # type: ignore[import-untyped]  # has no type annotations
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
from lltm.modules import LLTM  # type: ignore[import-not-found]  # on the path since the line above

ROWS = COLUMNS = 8
CLASSES = 10
DARKEST = 16.0


@dataclass(frozen=True)
class Digits:
    """Images (N, 8, 8), float32 from 0 to 1, with their labels (N), from 0 to 9."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Digits:
        """The same digits on another device."""
        return Digits(self.images.to(device), self.labels.to(device))


def load() -> tuple[Digits, Digits]:
    """The digits of scikit-learn in a fixed split: four fifths to train on, the rest to test on."""
    given = load_digits()
    images = torch.tensor(given.images, dtype=torch.float32) / DARKEST
    labels = torch.tensor(given.target)
    parts = train_test_split(range(len(labels)), test_size=0.2, stratify=given.target, random_state=0)
    learnt_from, tested_on = (Digits(images[part], labels[part]) for part in parts)
    return learnt_from, tested_on


def batches(count: int, size: int, epoch: int) -> list[Tensor]:
    """The indices of the batches of an epoch, each (size), in a random order; an incomplete batch is dropped."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))
    return [batch for batch in order.split(size) if len(batch) == size]


class Classifier(nn.Module):
    """Reads an image from top to bottom, one row per step, and classifies the last state.

    Args:
        hidden_size: the size of that state.
        native: whether to compute with the native kernels instead of their references.
    """

    def __init__(self, hidden_size: int = 64, *, native: bool = True) -> None:
        super().__init__()
        self.reader = LLTM(COLUMNS, hidden_size, batch_first=True, native=native)
        self.head = nn.Linear(hidden_size, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of the digits, (B, 10), for images (B, 8, 8)."""
        _, (last, _) = self.reader(images)
        logits: Tensor = self.head(last[-1])
        return logits
