"""C++ and CUDA extensions for scripts and setup.py files: the names of `torch.utils.cpp_extension`.

`load`, `load_inline`, `BuildExtension`, `CUDAExtension` and `OpExtension` build through opwright. All other names are
PyTorch's own. `python -m opwright.cpp_extension setup.py ...` runs an unchanged setup.py with this module.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from opwright._lazy import names_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from setuptools import Extension
    from torch.utils.cpp_extension import (
        COMMON_NVCC_FLAGS,
        CUDA_HOME,
        CUDNN_HOME,
        IS_HIP_EXTENSION,
        ROCM_HOME,
        check_compiler_is_gcc,
        check_compiler_ok_for_platform,
        get_compiler_abi_compatibility_and_version,
        get_cxx_compiler,
        get_default_build_root,
        include_paths,
        is_ninja_available,
        library_paths,
        remove_extension_h_precompiler_headers,
        verify_ninja_availability,
    )

    from opwright.builder.setuptools.command import BuildExtension
    from opwright.builder.setuptools.op_extension import OpExtension
    from opwright.builder.setuptools.torch_extension import CUDAExtension, SyclExtension
    from opwright.loader.jit import load, load_inline

    CppExtension: Callable[..., Extension]  # PyTorch's own, which has no types

__all__ = [
    "COMMON_NVCC_FLAGS",
    "CUDA_HOME",
    "CUDNN_HOME",
    "IS_HIP_EXTENSION",
    "ROCM_HOME",
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "OpExtension",
    "SyclExtension",
    "check_compiler_is_gcc",
    "check_compiler_ok_for_platform",
    "get_compiler_abi_compatibility_and_version",
    "get_cxx_compiler",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "remove_extension_h_precompiler_headers",
    "verify_ninja_availability",
]

# Imported on first use: a setup.py of operator libraries does not need torch, and a script does not need setuptools.
_HOMES = {
    "BuildExtension": "opwright.builder.setuptools.command",
    "CUDAExtension": "opwright.builder.setuptools.torch_extension",
    "OpExtension": "opwright.builder.setuptools.op_extension",
    "SyclExtension": "opwright.builder.setuptools.torch_extension",
    "load": "opwright.loader.jit",
    "load_inline": "opwright.loader.jit",
}
_ours = names_from(__name__, _HOMES)


def _torchs_or_ours(name: str) -> object:
    if name in _HOMES or name.startswith("__"):
        return _ours(name)
    torchs = importlib.import_module("torch.utils.cpp_extension")
    try:
        return getattr(torchs, name)
    except AttributeError:
        return _ours(name)  # raises an error that names this module


if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = _torchs_or_ours


def __dir__() -> list[str]:
    return __all__


if __name__ == "__main__":
    from opwright.loader.drop_in.run import main

    sys.exit(main(sys.argv[1:]))
