from __future__ import annotations

import pytest
import torch

from opwright.cpp_extension import CppExtension, CUDAExtension, SyclExtension
from opwright.errors import ToolchainError


def test_an_extension_is_the_one_of_pytorch() -> None:
    from torch.utils import cpp_extension

    given = {"include_dirs": ["mine"], "define_macros": [("A", "1")], "extra_compile_args": {"cxx": ["-O2"]}}
    ours = CppExtension("a.b", ["b.cpp"], **given)
    theirs = cpp_extension.CppExtension("a.b", ["b.cpp"], **{**given, "include_dirs": ["mine"]})
    assert vars(ours)["libraries"] == vars(theirs)["libraries"] == ["c10", "torch", "torch_cpu", "torch_python"]
    assert vars(ours)["library_dirs"] == vars(theirs)["library_dirs"]
    assert vars(ours)["extra_compile_args"] == {"cxx": ["-O2"]}
    assert CppExtension("c", ["c.cpp"], py_limited_api=True).libraries == ["c10", "torch", "torch_cpu"]


def test_an_unknown_argument_of_setuptools_causes_a_warning() -> None:
    with pytest.warns(UserWarning, match="nknown .*Extension.* options: 'extra_link_flags'"):
        CppExtension("a", ["a.cpp"], extra_link_flags=["-lm"])


@pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch is a CUDA build")
def test_a_cuda_extension_for_a_cpu_build_of_pytorch_is_rejected() -> None:
    with pytest.raises(ToolchainError, match=r"CUDAExtension\('a'\) requires a CUDA build of PyTorch, but this one"):
        CUDAExtension("a", ["a.cu"])


def test_sycl_is_rejected() -> None:
    with pytest.raises(
        ToolchainError, match=r"SyclExtension\('a'\) is not supported: opwright supports C\+\+ and CUDA"
    ):
        SyclExtension("a", ["a.sycl"])
