"""Builds and loads sources, with the arguments of `torch.utils.cpp_extension`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.compile import build_plan, copy_to
from opwright.builder.inline import inline_sources
from opwright.builder.plan import plan_sources, with_definitions
from opwright.builder.symbols import module_names, registers_operators
from opwright.cache.cache import Cache
from opwright.errors import LoadError, ToolchainError
from opwright.loader.builds import open_build
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
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    *,
    packages: Sequence[str] = (),
    abi: str | None = None,
    definitions: str | Path | None = None,
) -> ModuleType | str:
    """Build sources into a shared object, unless it is in the cache, and load it.

    The arguments are those of `torch.utils.cpp_extension.load`, in the same order. Differences: builds are
    cached by content; a result that is not a Python module, but registers operators, is loaded too; and
    no intermediate files are kept, so `keep_intermediates` has no effect. As in PyTorch, a flag is
    split into words as in a shell.

    Args:
        name: the name of the file to build, and of the Python module if the result is one.
        sources: C++ and CUDA files.
        extra_cflags: further flags for the C++ compiler.
        extra_cuda_cflags: further flags for nvcc.
        extra_sycl_cflags: not supported; opwright does not build SYCL.
        extra_ldflags: further flags for the linker, such as `-lopencv_core`.
        extra_include_paths: folders of headers.
        build_directory: a folder that receives a copy of the result.
        verbose: print each step.
        with_cuda: compile and link for CUDA; by default, if a source ends in `.cu`.
        with_sycl: not supported; opwright does not build SYCL.
        is_python_module: import the result if it is a Python module; otherwise, or if False, its operators
            are registered.
        is_standalone: build a program instead of a shared object.
        keep_intermediates: accepted for compatibility.
        packages: names of pkg-config packages, such as `opencv4`.
        abi: `"stable"`, `"full"`, or None to detect it from the headers that the sources include.
        definitions: the folder of an op.py whose operators the sources implement; omit it if the
            sources define their own.

    Returns:
        The Python module if the result is one, otherwise the path of the shared object or program.

    Raises:
        BuildError: a source is missing or rejected.
        ToolchainError: a compiler, a header or a package is missing.
        LoadError: the result cannot be loaded.
    """
    if with_sycl or extra_sycl_cflags:
        msg = "opwright builds C++ and CUDA, not SYCL: omit with_sycl and extra_sycl_cflags"
        raise ToolchainError(msg)
    plan = plan_sources(
        name,
        [sources] if isinstance(sources, (str, Path)) else sources,
        abi=abi,
        # The shared object itself determines which of the two it is.
        product="program" if is_standalone else None if is_python_module else "operators",
        cuda=with_cuda,
        c_as_cpp=True,
        packages=packages,
        include_dirs=[str(folder).strip() for folder in extra_include_paths or ()],
        cflags=_words(extra_cflags),
        cuda_cflags=_words(extra_cuda_cflags),
        ldflags=_words(extra_ldflags),
    )
    if plan.cuda and not is_standalone and find_pytorch().cuda is None:
        msg = (
            f"{name!r} contains CUDA code, but this PyTorch ({find_pytorch().version}) is a CPU build, which cannot "
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
    if is_standalone:
        return str(path)
    is_module = is_python_module and bool(module_names(path))
    if is_python_module and not is_module and not registers_operators(path):
        msg = (
            f"{path} is not a Python module named {name}, and registers no operators: define a module with "
            "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), name functions=[...] in load_inline, or register operators with "
            "TORCH_LIBRARY; or pass is_python_module=False, which opens a library unchanged"
        )
        raise LoadError(msg)
    return open_build(name, path, is_module=is_module) or str(path)


def _words(flags: Sequence[str] | None) -> list[str]:
    """The words of `flags`. PyTorch passes flags to a shell: `["-O3 -isystem include"]` is three words."""
    words: list[str] = []
    for flag in flags or ():
        text = str(flag).strip()
        try:
            words += [text] if _contains_path_with_space(text) else shlex.split(text)
        except ValueError:  # quotes that a shell does not accept
            words.append(text)
    return words


def _contains_path_with_space(flag: str) -> bool:
    """Whether a flag such as `-I/my libraries/include` ends in the path of an existing file that contains a space."""
    candidates = (flag, flag[2:], flag[flag.find("/") :])
    return any(" " in path and _exists(path) for path in candidates)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # too long for a path
        return False


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
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
    gil_not_used: bool = False,
    *,
    packages: Sequence[str] = (),
    abi: str | None = None,
    definitions: str | Path | None = None,
) -> ModuleType | str:
    """Build sources from strings, unless the result is in the cache, and load it.

    The arguments are those of `torch.utils.cpp_extension.load_inline`, in the same order; those that `load`
    also has mean the same. Differences: `torch/extension.h` is not included for sources of the stable
    ABI, which compile in seconds; and precompiled headers are used where they help, so `use_pch` has
    no effect.

    Args:
        name: the name of the file to build, and of the Python module if the result is one.
        cpp_sources: C++; several strings are concatenated into one file.
        cuda_sources: CUDA; several strings are concatenated into one file.
        sycl_sources: not supported; opwright does not build SYCL.
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
        with_pytorch_error_handling: convert PyTorch's errors and warnings in `functions` to Python's.
        keep_intermediates: accepted for compatibility.
        use_pch: accepted for compatibility.
        no_implicit_headers: include only the headers that the sources include themselves.
        gil_not_used: let a free-threaded Python call `functions` without the GIL.
        packages: see `load`.
        abi: see `load`.
        definitions: see `load`.

    Returns:
        The Python module if the result is one, otherwise the path of the shared object.

    Raises:
        BuildError: there is no source, or it is rejected.
        ToolchainError: a compiler, a header or a package is missing.
        LoadError: the result cannot be loaded.
    """
    if sycl_sources or with_sycl or extra_sycl_cflags:
        msg = "opwright builds C++ and CUDA, not SYCL: omit sycl_sources, with_sycl and extra_sycl_cflags"
        raise ToolchainError(msg)
    files = inline_sources(
        Cache(),
        cpp_sources,
        cuda_sources,
        functions,
        implicit_headers=not no_implicit_headers,
        torch_errors=with_pytorch_error_handling,
        gil_not_used=gil_not_used,
    )
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
