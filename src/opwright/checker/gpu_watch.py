"""Detects faults that calls leave on the GPU: launches that failed silently, and errors that no later call survives."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

from opwright.checker.cuda_runtime import CudaRuntime
from opwright.checker.kinds import Kind
from opwright.checker.recorder import DeviceFault
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator


class FailedLaunchError(Exception):
    """A call returned although a kernel that it launched never ran."""


class GpuWatch:
    """Watches the calls of an operator on the GPU.

    Args:
        runtime: the CUDA runtime of this process.
    """

    def __init__(self, runtime: CudaRuntime | None = None) -> None:
        self._runtime = runtime or CudaRuntime()
        self._unnoticed = ""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Wait for the work of the enclosed call, so that its errors are not attributed to a later one.

        Its arguments are ready when it starts, on whichever stream it reads them.

        Raises:
            FailedLaunchError: the call returned although a kernel launch in it failed.
        """
        torch.cuda.synchronize()
        self._runtime.take_error()  # of earlier code
        try:
            yield
        except Exception:
            self._runtime.take_error()  # the call has reported it
            raise
        unnoticed = self._runtime.take_error()
        self._unnoticed = self._unnoticed or unnoticed
        torch.cuda.synchronize()
        if unnoticed:
            raise FailedLaunchError(_launched(unnoticed))

    def faults(self) -> Iterator[DeviceFault]:
        """The faults of all calls since the previous query, regardless of the caller."""
        if not torch.cuda.is_initialized():
            return
        if self._unnoticed:
            got, self._unnoticed = _launched(self._unnoticed), ""
            yield DeviceFault(Kind.LAUNCH, got, "a kernel that runs, or an error from the call", is_final=False)
        if error := _error_of_the_gpu():
            wanted = "kernels that access only the memory of their arguments and results"
            # The error is permanent if it is reported again.
            yield DeviceFault(Kind.GPU_FAULT, error, wanted, is_final=bool(_error_of_the_gpu()))


def is_cuda_error(error: Exception) -> bool:
    """Whether an operator's error is a CUDA error that it passed on, other than running out of memory."""
    text = str(error)
    return ("CUDA error" in text or "cudaError" in text) and not isinstance(error, torch.OutOfMemoryError)


def _launched(error: str) -> str:
    return f"the call returned, but a kernel that it launched never ran: {error}"


def _error_of_the_gpu() -> str:
    try:
        torch.cuda.synchronize()
    except Exception as error:
        return first_line(error)
    return ""
