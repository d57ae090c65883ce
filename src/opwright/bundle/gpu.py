"""The GPU that a bundle is built for: whether it exists, its generation, and how it multiplies during shipping."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator


def require_gpu() -> None:
    """Check that PyTorch can use a GPU.

    Raises:
        BundleError: it cannot.
    """
    if torch.version.cuda is None:
        why = f"PyTorch {torch.__version__} is not a CUDA build. Install one"
    elif not torch.cuda.is_available():
        why = "PyTorch finds no GPU. Ship on a machine with a GPU of the kind that the bundle is for"
    else:
        return
    msg = f"device='cuda' requires a GPU that PyTorch can use: {why}, or ship the model for the CPU"
    raise BundleError(msg)


def capability() -> tuple[int, int]:
    """The compute capability of the GPU, such as (9, 0)."""
    return torch.cuda.get_device_capability()


@contextlib.contextmanager
def whole_float32() -> Iterator[None]:
    """Disable TF32, so that cuDNN and cuBLAS multiply in full float32, as in the host."""
    settings: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [one.allow_tf32 for one in settings]
    try:
        for one in settings:
            one.allow_tf32 = False
        yield
    finally:
        for one, was in zip(settings, before, strict=True):
            one.allow_tf32 = was
