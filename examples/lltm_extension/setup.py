"""Builds the extensions with PyTorch's setuptools classes: `python setup.py build_ext --inplace`."""

from __future__ import annotations

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

# setuptools passes the flags that Python was built with, such as -g, which doubles the compile time of lltm.cpp.
NO_DEBUG = "-g0"

extensions = [CppExtension("lltm_cpp", ["lltm.cpp"], depends=["lltm.h"], extra_compile_args=[NO_DEBUG])]
# CUDAExtension links libraries that a CPU build of PyTorch does not have.
if torch.version.cuda is not None and CUDA_HOME is not None:
    extensions.append(
        CUDAExtension(
            "lltm_cuda",
            # setuptools names an object file after its source, so two sources with the same name would share it.
            ["lltm_cuda.cpp", "lltm_cuda_kernel.cu"],
            depends=["lltm.h", "lltm_cuda.h"],
            extra_compile_args={"cxx": [NO_DEBUG], "nvcc": []},
        )
    )

setup(name="lltm_extension", py_modules=["lltm"], ext_modules=extensions, cmdclass={"build_ext": BuildExtension})
