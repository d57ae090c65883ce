"""Initializes PyTorch's math library before operators run: its own initialization is not thread-safe."""

from __future__ import annotations

import torch

_FUNCTIONS = (torch.exp, torch.sqrt, torch.tanh, torch.log, torch.sin)
_DTYPES = (torch.float32, torch.float64)
# PyTorch splits no tensor of this size among threads.
_COUNT = 16


def initialize_math_library() -> None:
    """Call a few functions in this thread alone.

    PyTorch computes sqrt, exp and others with MKL, which selects its kernels at the first call. If that call comes from
    several threads at once, some results have only part of their precision: in PyTorch 2.13, `torch.rand(4096).sqrt()`
    is off by 3e-4 in some of the processes that begin with it. An operator, or a reference, is not the cause of that.
    """
    for dtype in _DTYPES:
        ones = torch.ones(_COUNT, dtype=dtype)
        for function in _FUNCTIONS:
            function(ones)
