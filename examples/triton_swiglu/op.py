"""The gated activation SwiGLU as a Triton kernel, which Triton's interpreter runs if there is no GPU.

N. Shazeer, "GLU Variants Improve Transformer", https://arxiv.org/abs/2002.05202.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

import opwright

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # Triton reads it when it is imported

import triton
import triton.language as tl

if TYPE_CHECKING:
    from collections.abc import Iterator

library = opwright.Library("triton_swiglu")

BLOCK = 1024
# Triton's interpreter runs one kernel at a time.
INTERPRETER = threading.Lock()


@library.op
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, row-major, for two tensors of the same shape and floating dtype."""
    return (nn.functional.silu(gate) * up).contiguous()


@swiglu.samples(dtypes=[torch.float64, torch.float16, torch.bfloat16])
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(3, 500), make.randn(3, 500)
    yield make.randn(2, 2, 5), make.randn(2, 2, 5)


@swiglu.sweep
def _(make: opwright.Make) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    for rows in (1, 16):
        yield f"{rows} x 4096", (make.randn(rows, 4096), make.randn(rows, 4096))


@triton.jit  # type: ignore[untyped-decorator]
def swiglu_kernel(gate_ptr, up_ptr, result_ptr, count, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  Triton types its arguments
    """One block of elements."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < count
    gate = tl.load(gate_ptr + at, mask=inside)
    up = tl.load(up_ptr + at, mask=inside)
    wide = tl.float64 if gate.dtype == tl.float64 else tl.float32
    gate = gate.to(wide)
    result = gate / (1 + tl.exp(-gate)) * up.to(wide)
    tl.store(result_ptr + at, result.to(up.dtype), mask=inside)


def launch(gate: Tensor, up: Tensor) -> Tensor:
    """Launch the kernel, with one program per block of elements."""
    if gate.shape != up.shape or gate.dtype != up.dtype or not gate.is_floating_point():
        message = (
            f"swiglu got {gate.dtype} {tuple(gate.shape)} and {up.dtype} {tuple(up.shape)}; expected two tensors "
            "of the same shape and floating dtype"
        )
        raise ValueError(message)
    gate, up = gate.contiguous(), up.contiguous()
    result = torch.empty_like(gate)
    if result.numel():
        with INTERPRETER if gate.is_cpu else contextlib.nullcontext():
            swiglu_kernel[triton.cdiv(result.numel(), BLOCK),](gate, up, result, result.numel(), block=BLOCK)
    return result


swiglu.kernel(device="cpu")(launch)
swiglu.kernel(device="cuda")(launch)
