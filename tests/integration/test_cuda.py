"""A mixed C++ and CUDA library, built if nvcc is installed, and run if there is a GPU."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import torch

import opwright
from tests.integration.conftest import write
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Dynamic

OP = """
import opwright
from torch import Tensor
library = opwright.Library("mixed", sources=["cpu.cpp", "cuda.cu"])
@library.op
def double(x: Tensor) -> Tensor:
    return 2 * x
"""
CPU = """
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
using opwright::Tensor;
Tensor double_cpu(const Tensor& x) {
    Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i];
    return result;
}
OPWRIGHT_IMPL(mixed, CPU, m) { m.impl("double", OPWRIGHT_FN(double_cpu)); }
"""
CUDA = """
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>
#include <cuda_runtime.h>
using opwright::Tensor;
__global__ void double_kernel(const float* from, float* into, int64_t count) {
    const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (i < count) into[i] = 2 * from[i];
}
Tensor double_cuda(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = torch::stable::empty_like(x);
    if (x.numel() == 0) return result;
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
    const int64_t blocks = (x.numel() + 255) / 256;
    double_kernel<<<blocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(
        x.const_data_ptr<float>(), result.mutable_data_ptr<float>(), x.numel());
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}
OPWRIGHT_IMPL(mixed, CUDA, m) { m.impl("double", OPWRIGHT_FN(double_cuda)); }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, {"op.py": OP, "cpu.cpp": CPU, "cuda.cu": CUDA})


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_both_parts_become_one_library_that_loads_pytorchs_cuda_part(
    folder: Path, dynamic: Dynamic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0;9.0+PTX")
    path = opwright.build(folder, cuda=True)
    needed = dynamic(path, "needed")
    # Without libtorch.so, a process with a CUDA build of PyTorch would not find torch_c10_cuda_check_msg.
    assert "libtorch.so" in needed
    assert any(name.startswith("libcudart.so") for name in needed)
    cuobjdump = shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")
    if cuobjdump:
        listed = [subprocess.check_output([cuobjdump, kind, path], text=True) for kind in ("--list-elf", "--list-ptx")]
        assert "sm_80" in listed[0]
        assert "sm_90" in listed[0]
        assert "sm_90" in listed[1]


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_an_error_in_a_cuda_source_has_its_location(folder: Path) -> None:
    (folder / "cuda.cu").write_text("#include <opwright/op.h>\n__global__ void k() { nowhere = 1; }\n")
    with pytest.raises(opwright.BuildError, match=r"cuda\.cu\(2\): error: identifier \"nowhere\" is undefined"):
        opwright.build(folder, cuda=True)


@pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch also loads the CUDA part")
def test_a_cpu_build_of_pytorch_gets_the_cpu_part(folder: Path) -> None:
    mixed = opwright.open(folder)
    assert torch.equal(mixed.ops.double(torch.ones(3)), torch.full((3,), 2.0))
    command = [*python(), "-m", "opwright", "build", str(folder)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert printed == "left out: cuda.cu (this PyTorch is a CPU build; --cuda compiles them anyway)\n"


@pytest.mark.needs("cuda", "nvcc")
def test_a_gpu_runs_the_cuda_part_on_the_current_stream(folder: Path) -> None:
    mixed = opwright.open(folder)
    x = torch.rand(1000, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        result = mixed.ops.double(x)
    torch.cuda.synchronize()
    assert torch.equal(result, 2 * x)
