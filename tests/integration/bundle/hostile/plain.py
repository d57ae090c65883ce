"""Model files with nothing hostile in them, which other modules change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim


class Small(nn.Module):
    """Contains what an exported program can contain: weights, a constant, dynamic sizes, a condition on them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.plain = torch.ones(2)

    def forward(self, x: Tensor, scale: Tensor) -> dict[str, Tensor]:
        wide = self.linear(x) * scale + self.plain
        if x.shape[0] % 5 != 1:
            wide = wide.div(2.0, rounding_mode="floor")
        return {"wide": wide, "rows": torch.ones(x.shape[0] * 2)}


def exported(path: Path) -> Path:
    """An exported program with nothing hostile in it."""
    inputs, shapes = (torch.ones(4, 3), torch.ones(2)), {"x": {0: Dim.DYNAMIC}, "scale": None}
    torch.export.save(torch.export.export(Small().eval(), inputs, dynamic_shapes=shapes), path)
    return path


class Saves(nn.Module):
    """A module that TorchScript compiles, and whose code is then changed in the file."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = 1

    @torch.jit.export
    def __getstate__(self) -> tuple[int, bool]:
        return (self.kept, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[int, bool]) -> None:
        self.kept = state[0]
        self.training = state[1]

    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def scripted(path: Path) -> Path:
    """A TorchScript model with nothing hostile in it, which runs its own code while it is loaded."""
    script: Any = torch.jit.script
    torch.jit.save(script(Saves().eval()), path)
    return path
