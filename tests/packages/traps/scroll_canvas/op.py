"""Pastes patches into a canvas; the kernel reads part of the canvas after overwriting it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_scroll_canvas", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(mutates=("canvas",), differentiable=())
def paste_(canvas: Tensor, patch: Tensor, top: int = 0, left: int = 0) -> None:
    """Writes the patch into the canvas, its first pixel at (top, left).

    canvas is (H, W) and patch (h, w), both uint8 or both float32, and the patch must fit into the canvas at that point.
    The patch may be a part of the canvas; its values from before the call are written. The pixels of the canvas must
    not overlap: one of its strides must be positive (or that size at most 1), and the other larger than the span of the
    first (or that size at most 1).
    """
    if canvas.dtype not in (torch.uint8, torch.float32) or patch.dtype != canvas.dtype:
        msg = f"canvas and patch must both be uint8 or float32, got {canvas.dtype} and {patch.dtype}"
        raise TypeError(msg)
    if canvas.dim() != 2 or patch.dim() != 2:
        msg = f"canvas and patch must have two dimensions, got {tuple(canvas.shape)} and {tuple(patch.shape)}"
        raise ValueError(msg)
    rows, columns = patch.shape
    if top < 0 or left < 0 or top > canvas.shape[0] - rows or left > canvas.shape[1] - columns:
        msg = f"the patch must fit into the canvas, got {tuple(patch.shape)} at {top}, {left}"
        raise ValueError(msg)
    if not _is_spread(*canvas.shape, *canvas.stride()):
        msg = f"the pixels of the canvas must not overlap, got strides {canvas.stride()}"
        raise ValueError(msg)
    canvas[top : top + rows, left : left + columns] = patch.clone()


def _is_spread(rows: int, columns: int, down: int, across: int) -> bool:
    if rows < 2 or columns < 2:
        return (rows < 2 or down > 0) and (columns < 2 or across > 0)
    return (across > 0 and down > (columns - 1) * across) or (down > 0 and across > (rows - 1) * down)


@paste_.samples
def _(make: Make) -> Iterator[object]:
    height, width = make.size(9), make.size(12)
    yield make.rand(height, width), make.rand(height, width)
    yield make.rand(10, 12), make.rand(4, 5), 3, 6
    yield make.randint(0, 256, 8, 8, dtype=torch.uint8), make.randint(0, 256, 2, 8, dtype=torch.uint8), 5
