"""Reads the operator namespaces that an object file or a shared object defines, without opening it."""

from __future__ import annotations

import contextlib
import mmap
import re
import struct
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from opwright.errors import LoadError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The symbols of the registration macros: opwright's, and PyTorch's two, whose static object has a mangled name: its C++
# namespaces, its length, and the name itself. (Their static function is often inlined.)
_OURS = re.compile(r"^opwright_defines_(\w+)$")
# The libraries of Python and of PyTorch for Python, and the symbols that they define.
_PYTHONS = re.compile(r"^libpython|^libtorch_python")
_PYTHON_CALL = re.compile(r"^_?Py[A-Z_]|^_?THP[A-Z]|^_ZN8pybind11")
# libtorch's functions that register operators: torch::Library, RegisterOperators, the stable ABI.
_REGISTERS = re.compile(r"^_ZNR?5torch7Library|^_ZN3c1017RegisterOperators|_library_(?:init|def|impl)")
# The function that nvcc generates to launch a kernel; its name is preceded by its length.
_LAUNCHER = re.compile(r"(?<!\d)(\d+)__device_stub_(_Z\w+)")
# The mangled name of a function without a namespace, which is registered as its plain name if it is `extern "C"`.
_SIMPLE = re.compile(r"_Z(\d+)(\w+)")
_TORCHS = re.compile(r"^_Z(?:N\w*?)?L(\d+)((?:STABLE_)?TORCH_LIBRARY_static_init_)")


def defined_namespaces(path: Path) -> Counter[str]:
    """The namespaces that `path` defines with `TORCH_LIBRARY` or an equivalent, and how often it defines each.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    found: Counter[str] = Counter()
    with _readable(path) as file:
        for names in _symbol_tables(ELFFile(file)):
            # A symbol may be in several tables, and a static one several times in the same table.
            found |= Counter(namespace for name in names if (namespace := _namespace(name)))
    return found


def has_definitions(path: Path, namespace: str) -> bool:
    """Whether opwright defines the operators of `namespace` in the file.

    Raises:
        LoadError: the file cannot be read.
    """
    return mentions(path, f"opwright_defines_{namespace}\0")


def has_torch_library(path: Path, namespace: str) -> bool:
    """Whether the file contains a `TORCH_LIBRARY` for `namespace`, or one of PyTorch's stable ABI.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    # Symbol names are plain text in the file. Most files contain none of these, and parsing a large file is slow.
    if not mentions(path, f"TORCH_LIBRARY_static_init_{namespace}"):
        return False
    with _readable(path) as file:
        tables = _symbol_tables(ELFFile(file))
        return any(_in_torch_library(name) == namespace for names in tables for name in names)


def may_define_operators(path: Path, namespace: str) -> bool:
    """Whether the file contains a `TORCH_LIBRARY_FRAGMENT` for `namespace`, or `torch::RegisterOperators`.

    Raises:
        LoadError: the file cannot be read.
    """
    return mentions(path, f"TORCH_LIBRARY_FRAGMENT_static_init_{namespace}_") or mentions(
        path, "c1017RegisterOperators"
    )


def registers_without_opwright(path: Path) -> bool:
    """Whether the file registers operators without opwright: by one of PyTorch's macros, or RegisterOperators.

    Raises:
        LoadError: the file cannot be read.
    """
    return mentions(path, "TORCH_LIBRARY_") or mentions(path, "c1017RegisterOperators")


def address_of(path: Path, symbol: str) -> int | None:
    """The address of a symbol, relative to the base address of the shared object; None if it is stripped.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    with _readable(path) as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        found = _addresses(elf, table) if isinstance(table, SymbolTableSection) else iter(())
        return next((address for name, address in found if name == symbol), None)


def cuda_kernels(path: Path) -> list[str]:
    """The names of the CUDA kernels in a shared object, sorted; none if its symbols were stripped.

    The names are mangled. A kernel outside any namespace is also listed under its plain name, because it may be
    `extern "C"`.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    with _readable(path) as file:
        found = [_LAUNCHER.search(name) for names in _symbol_tables(ELFFile(file)) for name in names]
    kernels = {launcher[2][: int(launcher[1]) - len("__device_stub_")] for launcher in found if launcher}
    simple = [_SIMPLE.match(name) for name in kernels]
    return sorted(kernels | {name[2][: int(name[1])] for name in simple if name})


def mentions(path: Path, text: str) -> bool:
    """Whether the file contains `text`.

    Raises:
        LoadError: the file cannot be read.
    """
    with _readable(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text.encode()) >= 0


def needs_python(path: Path) -> bool:
    """Whether a shared object calls Python, so that only a process with Python can open it.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    with _readable(path) as file:
        elf = ELFFile(file)
        dynamic = elf.get_section_by_name(".dynamic")
        tags = dynamic.iter_tags() if isinstance(dynamic, DynamicSection) else ()
        needed = [str(getattr(tag, "needed", "")) for tag in tags]
        return any(_PYTHONS.match(name) for name in needed) or any(map(is_pythons, _undefined(elf, ".dynsym")))


def python_calls(path: Path) -> list[str]:
    """The functions and objects of Python that an object file or a shared object uses, sorted.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    with _readable(path) as file:
        elf = ELFFile(file)
        names = {name for table in (".dynsym", ".symtab") for name in _undefined(elf, table)}
        return sorted(filter(is_pythons, names))


def is_pythons(symbol: str) -> bool:
    """Whether a symbol belongs to Python or to PyTorch's library for Python."""
    return _PYTHON_CALL.match(symbol) is not None


def module_names(path: Path) -> list[str]:
    """The names under which Python can import a shared object, from the `PyInit_` functions that it exports.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    with _readable(path) as file:
        symbols = _symbols(ELFFile(file), ".dynsym")
        found = (symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF")
        return sorted(name.removeprefix("PyInit_") for name in found if name.startswith("PyInit_"))


def registers_operators(path: Path) -> bool:
    """Whether a shared object calls PyTorch to register operators or kernels.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    with _readable(path) as file:
        return any(_REGISTERS.search(name) for name in _undefined(ELFFile(file), ".dynsym"))


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise LoadError(msg) from error
    except (ELFError, ValueError, AssertionError, struct.error) as error:
        msg = f"{path} is not a shared object: expected an ELF file, as built by `opwright build` ({error})"
        raise LoadError(msg) from error


def _symbols(elf: ELFFile, table: str) -> Iterator[Any]:
    section = elf.get_section_by_name(table)
    if isinstance(section, SymbolTableSection):
        yield from section.iter_symbols()


def _undefined(elf: ELFFile, table: str) -> list[str]:
    """The names in `table` that another object must define."""
    return [
        symbol.name
        for symbol in _symbols(elf, table)
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
    ]


def _symbol_tables(elf: ELFFile) -> Iterator[list[str]]:
    """The names of the symbols in each table."""
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            yield [name for name, _ in _addresses(elf, section)]


def _addresses(elf: ELFFile, table: SymbolTableSection) -> Iterator[tuple[str, int]]:
    """The names and addresses of the symbols in a table, which pyelftools reads too slowly."""
    names = elf.get_section(table["sh_link"]).data()
    for name, _info, _other, _section, address, _size in struct.iter_unpack("<IBBHQQ", table.data()):
        yield names[name : names.find(b"\0", name)].decode(errors="replace"), address


def _namespace(symbol: str) -> str | None:
    if ours := _OURS.match(symbol):
        return ours[1]
    return _in_torch_library(symbol)


def _in_torch_library(symbol: str) -> str | None:
    if torchs := _TORCHS.match(symbol):
        # _ZL32TORCH_LIBRARY_static_init_my_ops: the 32 characters after the number are the name.
        name = symbol[torchs.start(2) : torchs.start(2) + int(torchs[1])]
        return name.removeprefix(torchs[2])
    return None
