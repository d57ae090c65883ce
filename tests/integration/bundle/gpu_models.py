"""Models to ship for a GPU, with rows in their first dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS, INPUTS, STATE = 6, 32, 64


class Convolutions(nn.Module):
    """Two convolutions with long sums, whose results would change if they were multiplied in TF32."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 64, 3, padding=1)
        self.norm = nn.BatchNorm2d(64)
        self.second = nn.Conv2d(64, 64, 3, padding=1)
        self.head = nn.Linear(64, 10)

    def forward(self, rows: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.first(rows)))
        scores: Tensor = self.head(torch.relu(self.second(features)).mean((2, 3)))
        return scores


class Sequences(nn.Module):
    """The states of the operator of ops/lltm after each step, for rows of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3 * STATE, STATE + INPUTS) / 8)
        self.bias = nn.Parameter(torch.randn(3 * STATE) / 8)

    def forward(self, rows: Tensor) -> Tensor:
        steps = rows.transpose(0, 1).contiguous()
        start = rows.new_zeros([rows.shape[0], self.weights.shape[0] // 3])
        states, _ = torch.ops.lltm.sequence(steps, self.weights, self.bias, start, start)
        found: Tensor = states.transpose(0, 1).contiguous()
        return found


class Lookup(nn.Module):
    """Rows of a table by index; an index that is too large makes a kernel's assertion fail."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.arange(12.0).reshape(4, 3))

    def forward(self, rows: Tensor) -> Tensor:
        return self.table[rows] * 2


class Pairs(nn.Module):
    """For each row, the sum of its products with all rows, which needs memory for all pairs."""

    def forward(self, rows: Tensor) -> Tensor:
        return torch.outer(rows, rows).sum(1)


def _seeded(model: type[nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return model()


def convolutions() -> nn.Module:
    return _seeded(Convolutions)


def sequences() -> nn.Module:
    return _seeded(Sequences)


def lookup() -> nn.Module:
    return Lookup()


def pairs() -> nn.Module:
    return Pairs()


def rows_of(name: str, count: int) -> Tensor:
    """Rows for one of the models, the same each time."""
    generator = torch.Generator().manual_seed(count)
    if name == "lookup":
        return torch.randint(4, (count,), generator=generator)
    sizes = {"convolutions": (3, 16, 16), "sequences": (STEPS, INPUTS)}.get(name, ())
    return torch.randn(count, *sizes, generator=generator)


def samples_of(name: str) -> Iterator[Tensor]:
    for count in (2, 5):
        yield rows_of(name, count)
