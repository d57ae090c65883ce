"""A setup.py extension that is an operator library, in a file without a Python version in its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools import Extension

from opwright.builder.abi import makes_python_module
from opwright.builder.plan import Plan, plan_library, plan_sources
from opwright.errors import SpecError
from opwright.spec import library_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.cache.cache import Cache


class OpExtension(Extension):
    """A shared object for setuptools to build, from an operator library or from sources without an op.py.

    Args:
        name: the dotted name of the file: `my_package.ops` becomes `my_package/ops.so`.
        sources: C++ and CUDA files without an op.py; omit them if `library` is given.
        library: the folder of an op.py, or the file.
        packages: names of pkg-config packages, such as `opencv4`.
        abi: `"stable"`, `"full"`, or None to detect it from what the sources include.
        **options: arguments of `setuptools.Extension`: include_dirs, define_macros, undef_macros, extra_compile_args
            (a list, or a dict with the keys `cxx` and `nvcc`), extra_link_args, libraries, library_dirs,
            runtime_library_dirs, extra_objects, depends, optional.

    Raises:
        SpecError: both or neither of `sources` and `library` are given, or an option is unknown.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[str] = (),
        *,
        library: str | Path | None = None,
        packages: Sequence[str] = (),
        abi: str | None = None,
        **options: Any,
    ) -> None:
        if bool(sources) == (library is not None):
            msg = f"OpExtension({name!r}) requires either sources= or library=, the folder of an op.py"
            raise SpecError(msg)
        if unknown := sorted(set(options) - _OPTIONS):
            msg = (
                f"OpExtension({name!r}) does not support {', '.join(unknown)}: expected {', '.join(sorted(_OPTIONS))}, "
                "packages or abi"
            )
            raise SpecError(msg)
        if library is not None and (given := sorted(set(options) - {"depends", "optional"})):
            msg = f"OpExtension({name!r}) reads {', '.join(given)} from op.py: pass it to opwright.Library there"
            raise SpecError(msg)
        super().__init__(name, list(sources), language="c++", **options)
        self.library = library
        self.packages = list(packages)
        self.abi = abi

    def plan(self, cache: Cache) -> Plan:
        """The plan that these arguments describe."""
        if self.library is not None:
            return plan_library(library_at(self.library), cache)
        both: dict[str, list[str]] = self.extra_compile_args if isinstance(self.extra_compile_args, dict) else {}
        macros = [_macro(*macro) for macro in self.define_macros] + [f"-U{name}" for name in self.undef_macros]
        return plan_sources(
            self.name.rpartition(".")[2],
            [str(source) for source in self.sources],
            abi=self.abi,
            product="python_module" if self.is_module else "operators",
            c_as_cpp=True,
            packages=self.packages,
            include_dirs=self.include_dirs,
            cflags=[*macros, *(both.get("cxx", []) if both else self.extra_compile_args)],
            cuda_cflags=[*macros, *both.get("nvcc", [])],
            ldflags=[
                *map(str, self.extra_objects),
                *(f"-L{folder}" for folder in self.library_dirs),
                *(f"-Wl,-rpath,{folder}" for folder in self.runtime_library_dirs),
                *(f"-l{library}" for library in self.libraries),
                *self.extra_link_args,
            ],
        )

    @property
    def is_module(self) -> bool:
        """Whether Python can import the result, which then gets the file name that Python expects."""
        return self.library is None and makes_python_module(map(Path, self.sources))


_OPTIONS = {
    *("include_dirs", "define_macros", "undef_macros", "extra_compile_args", "extra_link_args", "libraries"),
    *("library_dirs", "runtime_library_dirs", "extra_objects", "depends", "optional"),
}


def _macro(name: str, value: str | None = None) -> str:
    return f"-D{name}" if value is None else f"-D{name}={value}"
