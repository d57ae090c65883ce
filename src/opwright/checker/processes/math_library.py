"""Initializes PyTorch's math library before operators run: its own initialization is not thread-safe."""

from __future__ import annotations

import torch

_FUNCTIONS = (torch.exp, torch.sqrt, torch.tanh, torch.log, torch.sin)
_DTYPES = (torch.float32, torch.float64)
# PyTorch does not split tensors of this size among threads.
_COUNT = 16


def initialize_math_library() -> None:
    """Call a few functions in this thread alone.

    PyTorch computes sqrt, exp and others with MKL, which selects its kernels at the first call. If several threads make
    that call concurrently, some results lose precision: in PyTorch 2.13, `torch.rand(4096).sqrt()` is off by 3e-4 in
    some of the processes that start with it. Neither an operator nor a reference causes that.
    """
    for dtype in _DTYPES:
        ones = torch.ones(_COUNT, dtype=dtype)
        for function in _FUNCTIONS:
            function(ones)
