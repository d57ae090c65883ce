"""Plans a build: its sources, its flags, and the C++ interface of PyTorch that it uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from opwright.builder import definitions
from opwright.builder.abi import abi_of, includes_opwright, uses_python
from opwright.errors import BuildError, SpecError
from opwright.spec.library import SOURCE_SUFFIXES
from opwright.toolchain.devices import why_no_cuda
from opwright.toolchain.flags import Abi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.builder.ninja import Unit
    from opwright.cache.cache import Cache
    from opwright.spec import Library
    from opwright.toolchain.compiler import Compiler

Product = Literal["operators", "python_module", "program"]


@dataclass(frozen=True)
class Definitions:
    """The generated source that defines the operators of an op.py.

    Attributes:
        source: the file.
        namespace: the namespace of the operators.
        operators: their names.
    """

    source: Path
    namespace: str
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Commands:
    """The command lines of another build system, which replace those that opwright composes.

    Attributes:
        compilers: the programs in them, whose versions are part of the cache keys.
        units: one for each source.
        linker: the program that links, and what precedes the objects.
        link_flags: what follows the objects.
        device_link: nvcc's command line that links device code between objects; empty if there is no such step.
    """

    compilers: tuple[Compiler, ...]
    units: tuple[Unit, ...]
    linker: tuple[str, ...]
    link_flags: tuple[str, ...]
    device_link: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """One shared object (or program) to build.

    Attributes:
        name: the file name of the shared object or the program, without its suffix.
        sources: the C++ and CUDA files.
        abi: `"stable"` or `"full"`.
        product: a shared object that registers operators, one that Python can also import, or a program.
        cuda: whether to build for CUDA; otherwise `.cu` files are excluded.
        packages: pkg-config names.
        include_dirs: folders of the author's headers.
        uses_python: whether a source includes Python's headers.
        definitions: the generated source among them, which is not linked if the author's sources define the operators.
        forced_include: a header that every source includes first.
        includes_opwright: whether a source includes opwright's headers, whose common functions are then linked in.
        cflags: additional flags for the C++ compiler.
        cuda_cflags: additional flags for nvcc.
        ldflags: additional flags for the linker.
        debug: whether to build for a debugger: not optimized, with debug information for lines, variables and macros.
        commands: the command lines of another build system, used unchanged.
    """

    name: str
    sources: tuple[Path, ...]
    abi: Abi
    product: Product = "operators"
    cuda: bool = False
    packages: tuple[str, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    uses_python: bool = False
    definitions: Definitions | None = None
    forced_include: Path | None = None
    includes_opwright: bool = False
    cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    debug: bool = False
    commands: Commands | None = None


def plan_library(library: Library, cache: Cache, *, cuda: bool | None = None, debug: bool = False) -> Plan:
    """The plan of an operator library that an op.py describes.

    Args:
        library: the library.
        cache: the cache to write the generated definitions to.
        cuda: build the CUDA sources; by default, unless `why_no_cuda` returns a reason.
        debug: build for a debugger.

    Raises:
        SpecError: a reference's annotations do not define a schema, or the library has no operators.
    """
    if not library.ops:
        msg = f"library {library.namespace!r} describes no operators: decorate a function in op.py with @library.op"
        raise SpecError(msg)
    with_cuda = not why_no_cuda() if cuda is None else cuda
    sources = tuple(source for source in library.sources if with_cuda or source.suffix != ".cu")
    plan = Plan(
        name=library.namespace,
        sources=sources,
        abi=_checked_abi(library.abi) or abi_of(sources, library.include_dirs),
        cuda=with_cuda and any(source.suffix == ".cu" for source in sources),
        packages=tuple(library.packages),
        include_dirs=(library.root, *library.include_dirs),
        uses_python=uses_python(sources, library.include_dirs),
        cflags=tuple(library.cflags),
        cuda_cflags=tuple(library.cuda_cflags),
        ldflags=tuple(library.ldflags),
        debug=debug,
    )
    return with_definitions(plan, library, cache)


def with_definitions(plan: Plan, library: Library, cache: Cache) -> Plan:
    """`plan` with the C++ that defines the operators of `library`, and checks the kernels against them.

    Raises:
        SpecError: a reference's annotations do not define a schema.
    """
    generated = cache.keep_source(definitions.source_text(library), definitions.SOURCE_NAME)
    return replace(
        plan,
        # Linked first, so that operators are defined before kernels for them are registered.
        sources=(generated, *plan.sources),
        definitions=Definitions(generated, library.namespace, tuple(library.ops)),
        includes_opwright=True,
        forced_include=cache.keep_source(definitions.header_text(library), definitions.HEADER_NAME),
    )


def plan_sources(
    name: str,
    sources: Sequence[str | Path],
    *,
    abi: str | None = None,
    product: Product | None = None,
    cuda: bool | None = None,
    c_as_cpp: bool = False,
    packages: Sequence[str] = (),
    include_dirs: Sequence[str | Path] = (),
    cflags: Sequence[str] = (),
    cuda_cflags: Sequence[str] = (),
    ldflags: Sequence[str] = (),
) -> Plan:
    """The plan of sources without an op.py. `abi`, `product` and `cuda` are detected from the sources by default.

    With `c_as_cpp`, `.c` files are also accepted, and g++ compiles them as C++, as in PyTorch's builder.

    Raises:
        BuildError: a source is missing, or is neither C++ nor CUDA.
    """
    suffixes = SOURCE_SUFFIXES | ({".c"} if c_as_cpp else set())
    files = tuple(_checked_source(Path(source), suffixes) for source in sources)
    if not files:
        msg = f"{name!r} has no sources: pass at least one C++ or CUDA file"
        raise BuildError(msg)
    folders = tuple(Path(folder).absolute() for folder in include_dirs)
    with_python = uses_python(files, folders)
    return Plan(
        name=name,
        sources=files,
        abi=_checked_abi(abi) or abi_of(files, folders),
        product=product or ("python_module" if with_python else "operators"),
        cuda=any(file.suffix == ".cu" for file in files) if cuda is None else cuda,
        packages=tuple(packages),
        includes_opwright=includes_opwright(files, folders),
        include_dirs=folders,
        uses_python=with_python,
        cflags=tuple(cflags),
        cuda_cflags=tuple(cuda_cflags),
        ldflags=tuple(ldflags),
    )


def _checked_source(path: Path, suffixes: frozenset[str]) -> Path:
    if path.suffix not in suffixes:
        msg = f"{path} is neither C++ nor CUDA: expected a name that ends in {', '.join(sorted(suffixes))}"
        raise BuildError(msg)
    if not path.is_file():
        msg = f"the source {path} does not exist (looked in {Path.cwd()})"
        raise BuildError(msg)
    return path.absolute()


def _checked_abi(abi: Any) -> Abi | None:
    if abi is not None and abi not in get_args(Abi):
        msg = f"abi={abi!r} is unknown: expected 'stable' or 'full', or None to detect it from what the sources include"
        raise BuildError(msg)
    return cast("Abi | None", abi)
