from __future__ import annotations

import pytest
import torch

from opwright.builder.setuptools import nvcc
from opwright.errors import ToolchainError


@pytest.mark.skipif(torch.cuda.is_available(), reason="the architectures are those of the local GPUs")
def test_flags_are_those_of_pytorchs_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    monkeypatch.setenv("CC", "ccache /usr/bin/gcc")
    flags = nvcc.flags(["-O3"])
    assert flags[flags.index("-ccbin") + 1] == "/usr/bin/gcc"
    assert {"-D__CUDA_NO_HALF_OPERATORS__", "--expt-relaxed-constexpr", "-O3", "-std=c++20"} <= set(flags)
    assert any(flag.startswith("-gencode=arch=compute_80") for flag in flags)


def test_flags_of_the_author_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    flags = nvcc.flags(["-std=c++17", "-arch=sm_90", "-ccbin=g++-12"])
    assert [flag for flag in flags if flag.startswith(("-std", "-gencode", "-ccbin"))] == [
        "-std=c++17",
        "-ccbin=g++-12",
    ]


def test_the_list_of_architectures_is_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "7.5 9.0+PTX")
    assert [flag for flag in nvcc.flags([]) if flag.startswith("-gencode")] == [
        "-gencode=arch=compute_75,code=sm_75",
        "-gencode=arch=compute_90,code=compute_90",
        "-gencode=arch=compute_90,code=sm_90",
    ]


@pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch is a CUDA build")
def test_cuda_sources_for_a_cpu_build_of_pytorch_are_rejected() -> None:
    with pytest.raises(ToolchainError, match=r"there are CUDA sources, but this PyTorch \(.*\) is a CPU build"):
        nvcc.command(["-O3"])
