"""The operator libraries of a bundle: loaded as the host loads them, with the operators that the model calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from opwright.builder.library import build_library
from opwright.builder.recipes import compose
from opwright.bundle.format.manifest import LibraryFile, Operator
from opwright.bundle.pack.architectures import in_common, served_by, written
from opwright.errors import BundleError
from opwright.loader.kernels import has_native_kernel, native_schemas
from opwright.loader.open import open_library
from opwright.loader.shared_object import open_operators
from opwright.spec import library_at
from opwright.spec.library import RESERVED_NAMESPACES
from opwright.toolchain.pytorch import OLDEST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from opwright.bundle.pack.architectures import Capability, Served

# PyTorch's own namespaces; those that start with an underscore also belong to it.
_TORCHS = RESERVED_NAMESPACES - {"torchvision"}
_FULL_ABI = re.compile(r"^_Z\w*?(?:2at|3c10|5torch)[0-9NKS]")


@dataclass(frozen=True)
class Opened:
    """An operator library loaded in this process.

    Attributes:
        given: its path as the user passed it.
        path: the shared object.
        namespaces: the namespaces that it defines.
        stable: whether it uses only PyTorch's stable ABI.
        flags: the compiler flags that it was built with; None if unknown.
        served: the GPUs that its code supports; None if it has no code for GPUs, or if unknown.
    """

    given: Path
    path: Path
    namespaces: tuple[str, ...]
    stable: bool
    flags: tuple[str, ...] | None
    served: Served | None = None

    @property
    def file(self) -> str:
        """The library's path in a bundle."""
        return f"lib/{self.namespaces[0]}.so"


def open_libraries(paths: Iterable[str | Path], gpu: Capability | None = None) -> list[Opened]:
    """Build and load the libraries at `paths`: folders with an op.py, or shared objects.

    Args:
        paths: the libraries.
        gpu: the compute capability of the GPU that they will run on; None for the CPU.

    Raises:
        BundleError: a library has no native code, defines nothing, or has no code for the GPU.
        OpwrightError: a library cannot be described, built or loaded; the class names the step.
    """
    opened: list[Opened] = []
    for path in map(Path, paths):
        library = _open_object(path) if path.suffix == ".so" else _open_folder(path, gpu)
        if not library.namespaces:
            msg = f"{path} defines no operators: expected the output of `opwright build`, or a TORCH_LIBRARY"
            raise BundleError(msg)
        if library.path not in [other.path for other in opened]:
            opened.append(library)
    return opened


def this_release() -> str:
    """The release of the installed PyTorch, such as `2.13`."""
    return ".".join(torch.__version__.split(".")[:2])


def described(libraries: Sequence[Opened], called: Collection[str] | None, device: str) -> tuple[LibraryFile, ...]:
    """The libraries in the form of the manifest.

    Args:
        libraries: the loaded libraries.
        called: the names of the operators that the model calls; None if unknown, in which case all count as called.
        device: the device that they are called on.

    Raises:
        BundleError: no library defines an operator that the model calls, or it has no native kernel for the device.
    """
    known = {namespace for library in libraries for namespace in library.namespaces}
    for name in sorted(called or ()):
        namespace = name.partition("::")[0]
        if namespace not in known | _TORCHS and not namespace.startswith("_"):
            msg = (
                f"the model calls {name}, which none of the given libraries defines: add --ops with the folder or the "
                f"shared object that defines the namespace {namespace!r}"
            )
            raise BundleError(msg)
    return tuple(_described(library, called, device) for library in libraries)


def _described(library: Opened, called: Collection[str] | None, device: str) -> LibraryFile:
    operators = []
    for namespace in library.namespaces:
        for schema in native_schemas(namespace):
            overload = schema.partition("(")[0]
            name = overload.partition(".")[0]
            is_called = called is None or name in called
            if is_called and called is not None and not has_native_kernel(overload, device):
                msg = (
                    f"the model calls {name}, which has no native kernel for the {device.upper()} in {library.given}: "
                    "a process without Python cannot run it; implement it in "
                    f"OPWRIGHT_IMPL({namespace}, {device.upper()}, m)"
                )
                raise BundleError(msg)
            operators.append(Operator(schema, is_called and has_native_kernel(overload, device)))
    this = this_release()
    oldest, newest = (".".join(map(str, OLDEST)), None) if library.stable else (this, this)
    return LibraryFile(library.file, library.namespaces, oldest, newest, tuple(operators))


def _open_folder(path: Path, gpu: Capability | None) -> Opened:
    library = library_at(path)
    if not library.sources:
        msg = (
            f"{path} has no native sources: its operators exist only in Python, and a process without Python cannot "
            "run them. List sources=[...] in op.py and implement them there, or use plain PyTorch in the model"
        )
        raise BundleError(msg)
    artefact = build_library(library)
    flags = tuple(word for unit in compose(artefact.plan).units for word in unit.command)
    served = None if gpu is None else served_by(flags, gpu)
    if gpu is not None and served is not None and not served.serves(gpu):
        msg = (
            f"{path} is compiled for GPUs of compute capability {', '.join(in_common([served]))}, but this GPU has "
            f"{written(gpu)}: add it to TORCH_CUDA_ARCH_LIST, as in TORCH_CUDA_ARCH_LIST={written(gpu)}"
        )
        raise BundleError(msg)
    open_library(library, built=artefact.path)
    return Opened(path, artefact.path, (library.namespace,), artefact.plan.abi == "stable", flags, served)


def _open_object(path: Path) -> Opened:
    namespaces: Callable[[Path], set[str]] = open_operators
    return Opened(path, path.resolve(), tuple(sorted(namespaces(path))), not uses_full_abi(path), None)


def uses_full_abi(path: Path) -> bool:
    """Whether a shared object calls PyTorch's C++ API, which changes with every release."""
    with path.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if isinstance(section, SymbolTableSection):
                for symbol in section.iter_symbols():
                    if symbol["st_shndx"] == "SHN_UNDEF" and _FULL_ABI.match(symbol.name):
                        return True
    return False
