"""The extensions of `torch.utils.cpp_extension` that opwright may not be able to build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# PyTorch's own function: this module is imported before it replaces that function.
from torch.utils.cpp_extension import CUDAExtension as TorchsCudaExtension

from opwright.errors import ToolchainError
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from setuptools import Extension


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Extension:
    """A C++ and CUDA extension: `torch.utils.cpp_extension.CUDAExtension`.

    Args:
        name: the dotted name of the Python module.
        sources: C++ and CUDA files.
        *args: additional arguments of `setuptools.Extension`.
        **kwargs: the same, and `dlink` and `dlink_libraries` to link relocatable device code.

    Raises:
        ToolchainError: this PyTorch is a CPU build, or there is no CUDA toolkit.
    """
    torch = find_pytorch()
    if torch.cuda is None:
        msg = (
            f"CUDAExtension({name!r}) requires a CUDA build of PyTorch, but this one ({torch.version}) is a CPU build: "
            "install a CUDA build of torch, or build a CppExtension if torch.version.cuda is None"
        )
        raise ToolchainError(msg)
    try:
        extension: Extension = TorchsCudaExtension(name, sources, *args, **kwargs)
    except OSError as error:
        msg = f"CUDAExtension({name!r}): {error} Install the CUDA toolkit {torch.cuda}, or set CUDA_HOME to its folder"
        raise ToolchainError(msg) from error
    return extension


def SyclExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Extension:
    """Not supported.

    Raises:
        ToolchainError: always.
    """
    msg = f"SyclExtension({name!r}) is not supported: opwright supports C++ and CUDA, not SYCL"
    raise ToolchainError(msg)
