"""Builds operator libraries from a setup.py, into files without a Python version in their names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from opwright.builder.cache import Cache
from opwright.builder.compile import build_plan, copy_to
from opwright.builder.plan import Plan, plan_library, plan_sources
from opwright.errors import SpecError
from opwright.report.progress import Progress
from opwright.spec import library_at

if TYPE_CHECKING:
    from collections.abc import Sequence


class OpExtension(Extension):
    """A shared object for setuptools to build, from an operator library or from sources without an op.py.

    Args:
        name: the dotted name of the file: `my_package.ops` becomes `my_package/ops.so`.
        sources: C++ and CUDA files without an op.py; omit them if `library` is given.
        library: the folder of an op.py, or the file.
        packages: names of pkg-config packages, such as `opencv4`.
        abi: `"stable"`, `"full"`, or None to detect it from what the sources include.
        **options: arguments of `setuptools.Extension`: include_dirs, extra_compile_args,
            extra_link_args, libraries, library_dirs.

    Raises:
        SpecError: both or neither of `sources` and `library` are given.
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
            msg = f"OpExtension({name!r}) takes either sources= or library=, the folder of an op.py"
            raise SpecError(msg)
        super().__init__(name, list(sources), language="c++", **options)
        self.library = library
        self.packages = list(packages)
        self.abi = abi

    def plan(self, cache: Cache) -> Plan:
        """The plan that these arguments describe."""
        if self.library is not None:
            return plan_library(library_at(self.library), cache)
        return plan_sources(
            self.name.rpartition(".")[2],
            [str(source) for source in self.sources],
            abi=self.abi,
            packages=self.packages,
            include_dirs=self.include_dirs,
            cflags=self.extra_compile_args,
            ldflags=[
                *(f"-L{folder}" for folder in self.library_dirs),
                *(f"-l{library}" for library in self.libraries),
                *self.extra_link_args,
            ],
        )


class BuildExtension(build_ext):
    """A `build_ext` command that supports `OpExtension`; setuptools builds all other extensions.

    Example:
        setup(ext_modules=[OpExtension("ops", library="ops")], cmdclass={"build_ext": BuildExtension})
    """

    def get_ext_filename(self, fullname: str) -> str:
        """The file's path for a dotted name; for operators without the suffix of one Python version."""
        extension = self.ext_map.get(fullname)
        if isinstance(extension, OpExtension) and extension.plan(Cache()).product == "operators":
            return str(Path(*fullname.split(".")).with_suffix(".so"))
        return str(super().get_ext_filename(fullname))  # type: ignore[no-untyped-call]  # the stubs leave it untyped

    def build_extension(self, ext: Extension) -> None:
        """Build one extension, and copy it to where setuptools expects it."""
        if not isinstance(ext, OpExtension):
            super().build_extension(ext)
            return
        cache = Cache()
        artefact = build_plan(ext.plan(cache), cache=cache, progress=Progress(ext.name, verbose=bool(self.verbose)))
        copy_to(artefact, Path(self.get_ext_fullpath(ext.name)).absolute())
