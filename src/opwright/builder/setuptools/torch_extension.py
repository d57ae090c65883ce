"""The extensions of `torch.utils.cpp_extension`, which refuse what opwright does not build."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from setuptools import Extension

# PyTorch's own functions: this module is imported before it takes their place.
from torch.utils.cpp_extension import CppExtension as TorchsCppExtension
from torch.utils.cpp_extension import CUDAExtension as TorchsCudaExtension

from opwright.errors import SpecError, ToolchainError
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Sequence

_KNOWN = {
    *(name for kind in Extension.__mro__ if kind is not object for name in inspect.signature(kind).parameters),
    "py_limited_api",
} - {"self", "kw", "args"}
_OF_CUDA = {"dlink", "dlink_libraries"}


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Extension:
    """A C++ extension, with the headers and the libraries of PyTorch: `torch.utils.cpp_extension.CppExtension`.

    Args:
        name: the dotted name of the Python module.
        sources: C++ files.
        *args: further arguments of `setuptools.Extension`.
        **kwargs: the same.

    Raises:
        SpecError: an argument is unknown, which setuptools would ignore.
    """
    _check_known("CppExtension", name, kwargs, _KNOWN)
    extension: Extension = TorchsCppExtension(name, sources, *args, **kwargs)
    return extension


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Extension:
    """A C++ and CUDA extension: `torch.utils.cpp_extension.CUDAExtension`.

    Args:
        name: the dotted name of the Python module.
        sources: C++ and CUDA files.
        *args: further arguments of `setuptools.Extension`.
        **kwargs: the same, and `dlink` and `dlink_libraries`, to link relocatable device code.

    Raises:
        SpecError: an argument is unknown, which setuptools would ignore.
        ToolchainError: this PyTorch is a CPU build, or there is no CUDA toolkit.
    """
    _check_known("CUDAExtension", name, kwargs, _KNOWN | _OF_CUDA)
    torch = find_pytorch()
    if torch.cuda is None:
        msg = (
            f"CUDAExtension({name!r}) needs a CUDA build of PyTorch, and this one ({torch.version}) is a CPU build: "
            "install a CUDA build of torch, or build a CppExtension where torch.version.cuda is None"
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
    msg = f"SyclExtension({name!r}) is not supported: opwright builds C++ and CUDA, not SYCL"
    raise ToolchainError(msg)


def _check_known(function: str, name: str, given: dict[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(given) - known):
        msg = (
            f"{function}({name!r}) got {', '.join(unknown)}, which setuptools would ignore: expected "
            f"{', '.join(sorted(known - {'name', 'sources'}))}"
        )
        raise SpecError(msg)
