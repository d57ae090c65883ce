"""The CUDA runtimes of this process are found, and return their errors."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from opwright.checker import cuda_runtime
from opwright.checker.cuda_runtime import CudaRuntime
from opwright.checker.shared_objects import open_shared_objects, opened_and_closed


def test_the_c_library_is_among_the_open_shared_objects() -> None:
    assert any(hasattr(found, "malloc") for found in open_shared_objects("libc."))
    assert list(open_shared_objects("no such library")) == []
    opened, closed = opened_and_closed()
    assert opened > closed >= 0


def test_an_error_is_returned_once_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [9]
    runtime = SimpleNamespace(
        cudaGetLastError=lambda: codes.pop() if codes else 0,
        cudaGetErrorName=lambda code: b"cudaErrorInvalidConfiguration" if code == 9 else b"",
        cudaGetErrorString=lambda code: b"invalid configuration argument" if code == 9 else b"",
    )
    monkeypatch.setattr(cuda_runtime, "_runtimes", lambda _: [runtime])
    assert CudaRuntime().take_error() == "cudaErrorInvalidConfiguration, invalid configuration argument"
    assert CudaRuntime().take_error() == ""


@pytest.mark.needs("nvcc")
def test_the_real_runtime_stores_its_error() -> None:
    try:
        runtime = ctypes.CDLL("libcudart.so.13")
    except OSError:
        runtime = ctypes.CDLL("/usr/local/cuda/lib64/libcudart.so")
    assert runtime.cudaSetDevice(9999)  # there is no such GPU, or no driver
    assert CudaRuntime().take_error().startswith("cudaError")
