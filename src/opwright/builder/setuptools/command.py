"""The `build_ext` command of `torch.utils.cpp_extension`, through opwright's cache."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

from opwright.builder.compile import build_plan, copy_to
from opwright.builder.setuptools import nvcc, report
from opwright.builder.setuptools.op_extension import OpExtension
from opwright.builder.setuptools.recording import record
from opwright.cache.cache import Cache
from opwright.errors import OpwrightError, SpecError, ToolchainError
from opwright.report.progress import Progress

if TYPE_CHECKING:
    from setuptools import Extension
    from typing_extensions import Self

_COMPILERS = {"cxx", "nvcc", "nvcc_dlink"}
# The oldest Python whose limited API PyTorch's builder selects.
_OLDEST_PYTHON = "0x030A0000"


class BuildExtension(build_ext):
    """The `build_ext` command for `CppExtension`, `CUDAExtension` and `OpExtension`.

    As with PyTorch's, subclasses can change extensions and `self.compiler` until `build_extension` compiles them.

    Args:
        *args: arguments of setuptools.
        use_ninja: accepted for compatibility; opwright always builds with ninja.
        no_python_abi_suffix: omit Python's version from file names.
        **kwargs: arguments of setuptools: options of build_ext, such as parallel and build_lib.

    Example:
        setup(ext_modules=[CppExtension("ops", ["ops.cpp"])], cmdclass={"build_ext": BuildExtension})
    """

    def __init__(self, *args: Any, use_ninja: bool = True, no_python_abi_suffix: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if unknown := sorted(set(kwargs) - _options_of_build_ext()):
            warnings.warn(f"Unknown BuildExtension options: {', '.join(map(repr, unknown))}", stacklevel=2)
        self.use_ninja = use_ninja
        self.no_python_abi_suffix = no_python_abi_suffix

    @classmethod
    def with_options(cls, **options: Any) -> type[Self]:
        """A subclass whose constructor receives these options.

        Args:
            **options: arguments of the constructor.
        """

        class WithOptions(cls):  # type: ignore[misc, valid-type]  # mypy does not accept a variable as a base class
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{**kwargs, **options})

        return WithOptions

    def finalize_options(self) -> None:
        """Build every extension: the cache detects changes, whereas setuptools compares dates."""
        super().finalize_options()
        self.force = True

    def run(self) -> None:
        """Build the extensions, and copy them in place if requested."""
        super().run()
        for built, place in self.get_output_mapping().items():
            report.moved(Path(built).absolute(), Path(place).absolute())

    def get_ext_filename(self, fullname: str) -> str:
        """The path of the file for a dotted name; for operators, without the suffix of a Python version."""
        extension = self.ext_map.get(fullname)
        if isinstance(extension, OpExtension) and not extension.is_module:
            return str(Path(*fullname.split(".")).with_suffix(".so"))
        name = str(super().get_ext_filename(fullname))  # type: ignore[no-untyped-call]  # the stubs leave it untyped
        parts = name.split(".")
        if self.no_python_abi_suffix and len(parts) > 2:
            return ".".join([*parts[:-2], parts[-1]])
        return name

    def build_extensions(self) -> None:
        """Build all extensions, after checking that opwright supports them.

        Raises:
            ToolchainError: opwright does not support a source's language, or CUDA and PyTorch do not match.
        """
        for extension in self.extensions:
            _check_kinds(extension)
        if not all(isinstance(extension, OpExtension) for extension in self.extensions):
            record(self.compiler, verbose=bool(self.verbose))  # before several threads build extensions
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Build one extension, and copy it to the path that setuptools expects."""
        if isinstance(ext, OpExtension):
            self._build_operators(ext)
            return
        record(self.compiler, verbose=bool(self.verbose))
        _add_flags(ext)
        super().build_extension(ext)

    def _build_operators(self, ext: OpExtension) -> None:
        cache = Cache()
        try:
            artefact = build_plan(ext.plan(cache), cache=cache, progress=Progress(ext.name, verbose=bool(self.verbose)))
            report.add(copy_to(artefact, Path(self.get_ext_fullpath(ext.name)).absolute()), artefact)
        except OpwrightError as error:
            raise CompileError(str(error)) from error


def _options_of_build_ext() -> set[str]:
    return {option[0].rstrip("=").replace("-", "_") for option in build_ext.user_options}


def _check_kinds(extension: Extension) -> None:
    suffixes = {Path(source).suffix for source in extension.sources}
    if unsupported := suffixes & {".sycl", ".hip", ".mm"}:
        msg = (
            f"the extension {extension.name!r} has sources that end in {', '.join(sorted(unsupported))}: opwright "
            "supports C++ and CUDA, not SYCL, HIP or Objective-C++"
        )
        raise ToolchainError(msg)
    if suffixes & nvcc.SUFFIXES and not isinstance(extension, OpExtension):
        nvcc.check_release()


def _add_flags(extension: Extension) -> None:
    """Add the flags that PyTorch's builder adds, after the author's.

    Raises:
        SpecError: `extra_compile_args` is a string.
    """
    name = extension.name.rpartition(".")[2]
    added = ["-DTORCH_API_INCLUDE_EXTENSION_H"]
    if getattr(extension, "py_limited_api", False):
        added.append(f"-DPy_LIMITED_API={_OLDEST_PYTHON}")
    added.append(f"-DTORCH_EXTENSION_NAME={name}")
    given: Any = extension.extra_compile_args or []
    by_compiler = given if isinstance(given, dict) else {"cxx": given}
    if unknown := sorted(key for key, flags in by_compiler.items() if key not in _COMPILERS and flags):
        msg = (
            f"extra_compile_args of {extension.name!r} has flags for {', '.join(map(repr, unknown))}, which are "
            f"ignored: expected {', '.join(map(repr, sorted(_COMPILERS)))}"
        )
        warnings.warn(msg, stacklevel=2)
    if text := next((flags for flags in by_compiler.values() if isinstance(flags, str)), None):
        msg = f"extra_compile_args of {extension.name!r} contains the string {text!r}: expected a list of flags"
        raise SpecError(msg)
    if isinstance(given, dict):
        known = {"cxx": [], "nvcc": [], **{key: flags for key, flags in given.items() if key in _COMPILERS}}
        extension.extra_compile_args = {key: [*flags, *added] for key, flags in known.items()}  # type: ignore[assignment]  # as in PyTorch
    else:
        extension.extra_compile_args = [*given, *added]
