"""The peak speeds of the GPU: the bandwidth of a copy, and the rate of a matrix product."""

from __future__ import annotations

import functools

import torch

from opwright.bencher.stopping import SpreadRule
from opwright.bencher.timer import measure

# Too large for any cache, and small enough for any GPU.
_COPIED_BYTES = 2**30
_SHARE_OF_FREE = 0.25
# The sides of the matrices: the product takes milliseconds, even in float64, which many GPUs compute slowly.
_SIDE, _SIDE_FLOAT64 = 8192, 4096
_RULE = SpreadRule(seconds=0.5)
MULTIPLIED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def copied_per_second() -> float:
    """The bytes per second that a copy within the GPU's memory moves, read and written."""
    free, _ = torch.cuda.mem_get_info()
    source = torch.empty(min(_COPIED_BYTES, int(_SHARE_OF_FREE * free)), dtype=torch.uint8, device="cuda")
    copy = functools.partial(torch.empty_like(source).copy_, source)
    return 2 * source.nbytes / measure({"copy": copy}, rule=_RULE, device="cuda")["copy"].median


def multiplied_per_second(dtype: torch.dtype) -> float:
    """The floating-point operations per second of a large matrix product: two per multiply-add.

    Args:
        dtype: one of `MULTIPLIED`. float32 uses TF32 or not, according to the settings of this process.
    """
    side = _SIDE_FLOAT64 if dtype == torch.float64 else _SIDE
    left, right = torch.randn(2, side, side, dtype=dtype, device="cuda").unbind()
    multiply = functools.partial(torch.mm, left, right, out=torch.empty_like(left))
    return 2 * side**3 / measure({"GEMM": multiply}, rule=_RULE, device="cuda")["GEMM"].median


def described_product(dtype: torch.dtype) -> str:
    """The dtype of a product in words; for float32, whether this process's settings use TF32: `float32 in TF32`."""
    name = str(dtype).removeprefix("torch.")
    is_tf32 = dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "tf32"
    return f"{name} in TF32" if is_tf32 else name
