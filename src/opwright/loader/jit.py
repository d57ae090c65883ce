"""Builds and loads sources, with the arguments of `torch.utils.cpp_extension`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.cache import Cache
from opwright.builder.compile import build_plan, copy_to
from opwright.builder.inline import inline_sources
from opwright.builder.plan import Product, plan_sources, with_definitions
from opwright.errors import BuildError, LoadError, ToolchainError
from opwright.loader.shared_object import import_module, open_operators
from opwright.report.progress import Progress
from opwright.spec import library_at
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


def load(
    name: str,
    sources: str | Path | Sequence[str | Path],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | Path] | None = None,
    build_directory: str | Path | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool | None = None,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    *,
    packages: Sequence[str] = (),
    abi: str | None = None,
    definitions: str | Path | None = None,
) -> ModuleType | str:
    """Build sources into a shared object, unless the cache has it, and load it.

    The arguments are those of `torch.utils.cpp_extension.load`, in its order. Differences: builds are
    cached by content; `is_python_module` is detected from the sources by default; and no
    intermediate files are kept, so `keep_intermediates` has no effect.

    Args:
        name: the name of the file to build, and of the Python module if it is one.
        sources: C++ and CUDA files.
        extra_cflags: further flags for the C++ compiler.
        extra_cuda_cflags: further flags for nvcc.
        extra_sycl_cflags: not supported: opwright does not build SYCL.
        extra_ldflags: further flags for the linker, such as `-lopencv_core`.
        extra_include_paths: folders of headers.
        build_directory: a folder that receives a copy of the result.
        verbose: print each step.
        with_cuda: compile and link for CUDA; by default if a source ends in `.cu`.
        with_sycl: not supported: opwright does not build SYCL.
        is_python_module: import the result as a Python module; by default if a source binds one.
        is_standalone: build a program instead of a shared object.
        keep_intermediates: accepted for compatibility.
        packages: names of pkg-config packages, such as `opencv4`.
        abi: `"stable"`, `"full"`, or None to detect it from what the sources include.
        definitions: the folder of an op.py whose operators the sources implement; omit it if the
            sources define their own.

    Returns:
        The Python module if it is one, else the path of the shared object or the program.

    Raises:
        BuildError: a source is missing or rejected.
        ToolchainError: a compiler, a header or a package is missing.
        LoadError: the result cannot be loaded.
    """
    if with_sycl or extra_sycl_cflags:
        msg = "opwright builds C++ and CUDA, not SYCL: leave with_sycl and extra_sycl_cflags out"
        raise ToolchainError(msg)
    if is_python_module and is_standalone:
        msg = "is_python_module and is_standalone exclude each other, since a program is not a module: pass one of them"
        raise BuildError(msg)
    products: dict[bool | None, Product | None] = {None: None, True: "python_module", False: "operators"}
    plan = plan_sources(
        name,
        [sources] if isinstance(sources, (str, Path)) else sources,
        abi=abi,
        product="program" if is_standalone else products[is_python_module],
        cuda=with_cuda,
        packages=packages,
        include_dirs=extra_include_paths or (),
        cflags=extra_cflags or (),
        cuda_cflags=extra_cuda_cflags or (),
        ldflags=extra_ldflags or (),
    )
    if plan.cuda and not is_standalone and find_pytorch().cuda is None:
        msg = (
            f"{name!r} contains CUDA code and this PyTorch ({find_pytorch().version}) is a CPU build, which cannot "
            "load it: install a CUDA build of torch, or pass with_cuda=False and no .cu files"
        )
        raise LoadError(msg)
    cache = Cache()
    if definitions is not None:
        plan = with_definitions(plan, library_at(definitions), cache)
    artefact = build_plan(plan, cache=cache, progress=Progress(name, verbose=verbose))
    path = artefact.path
    if build_directory is not None:
        path = copy_to(artefact, Path(build_directory).absolute() / path.name)
    if plan.product == "python_module":
        return import_module(name, path)
    if plan.product == "operators":
        open_operators(path)
    return str(path)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | Path] | None = None,
    build_directory: str | Path | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool | None = None,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
    *,
    packages: Sequence[str] = (),
    abi: str | None = None,
    definitions: str | Path | None = None,
) -> ModuleType | str:
    """Build sources that are given as strings, unless the cache has the result, and load it.

    The arguments are those of `torch.utils.cpp_extension.load_inline`, in its order; those that `load`
    has too mean the same. PyTorch's headers are included only for sources that include none of
    them: a source that includes `opwright/op.h` compiles in seconds. Errors are always PyTorch's, and
    no precompiled header is used, so `with_pytorch_error_handling` and `use_pch` have no effect.

    Args:
        name: the name of the file to build, and of the Python module if it is one.
        cpp_sources: C++; several strings are joined into one file.
        cuda_sources: CUDA; several strings are joined into one file.
        sycl_sources: not supported: opwright does not build SYCL.
        functions: names of functions to bind into a Python module, or names with their docstrings.
        extra_cflags: see `load`.
        extra_cuda_cflags: see `load`.
        extra_sycl_cflags: see `load`.
        extra_ldflags: see `load`.
        extra_include_paths: see `load`.
        build_directory: see `load`.
        verbose: see `load`.
        with_cuda: see `load`.
        with_sycl: see `load`.
        is_python_module: see `load`.
        with_pytorch_error_handling: accepted for compatibility.
        keep_intermediates: accepted for compatibility.
        use_pch: accepted for compatibility.
        no_implicit_headers: never include a header that the sources do not include themselves.
        packages: see `load`.
        abi: see `load`.
        definitions: see `load`.

    Returns:
        The Python module if it is one, else the path of the shared object.

    Raises:
        BuildError: there is no source, or it is rejected.
        ToolchainError: a compiler, a header or a package is missing.
        LoadError: the result cannot be loaded.
    """
    if sycl_sources:
        msg = "opwright builds C++ and CUDA, not SYCL: leave sycl_sources out"
        raise ToolchainError(msg)
    files = inline_sources(Cache(), cpp_sources, cuda_sources, functions, implicit_headers=not no_implicit_headers)
    return load(
        name,
        files,
        extra_cflags,
        extra_cuda_cflags,
        extra_sycl_cflags,
        extra_ldflags,
        extra_include_paths,
        build_directory,
        verbose,
        with_cuda,
        with_sycl,
        is_python_module,
        keep_intermediates=keep_intermediates,
        packages=packages,
        abi=abi,
        definitions=definitions,
    )
