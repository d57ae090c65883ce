"""Builds op libraries from a setup.py, into files whose names carry no Python version."""

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
    """A shared object for setuptools to build: an op library's, or one of sources that stand alone.

    Args:
        name: the dotted name of the file: `my_package.ops` becomes `my_package/ops.so`.
        sources: C++ and CUDA files that stand alone; leave out when `library` is given.
        library: the folder of an op.py, or the file.
        packages: names of pkg-config packages, such as `opencv4`.
        abi: `"stable"`, `"full"`, or None to find it from what the sources include.
        **options: what `setuptools.Extension` takes: include_dirs, extra_compile_args,
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
        """What setuptools' options mean to opwright."""
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
    """The command `build_ext` that knows `OpExtension`; it leaves every other extension as it is.

    Example:
        setup(ext_modules=[OpExtension("ops", library="ops")], cmdclass={"build_ext": BuildExtension})
    """

    def get_ext_filename(self, fullname: str) -> str:
        """The file's path for a dotted name: without the suffix that ties a module to one Python."""
        extension = self.ext_map.get(fullname)
        if isinstance(extension, OpExtension) and extension.plan(Cache()).product == "operators":
            return str(Path(*fullname.split(".")).with_suffix(".so"))
        return str(super().get_ext_filename(fullname))  # type: ignore[no-untyped-call]  # the stubs leave it untyped

    def build_extension(self, ext: Extension) -> None:
        """Build one extension and put it where setuptools wants it."""
        if not isinstance(ext, OpExtension):
            super().build_extension(ext)
            return
        cache = Cache()
        artefact = build_plan(ext.plan(cache), cache=cache, progress=Progress(ext.name, verbose=bool(self.verbose)))
        copy_to(artefact, Path(self.get_ext_fullpath(ext.name)).absolute())
