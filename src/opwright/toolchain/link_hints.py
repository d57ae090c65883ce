"""Suggests what to do about an error of a linker."""

from __future__ import annotations

import os
import re
from pathlib import Path

from opwright.toolchain.link_faults import Fault, Kind, Place

_FLAGS = (
    "the linker's flags (ldflags= in opwright.Library, extra_ldflags= in opwright.load, extra_link_args= in setup.py)"
)
# What the name of an undefined symbol shows, by the first pattern that matches all of it.
_BY_SYMBOL = {
    r"main": "fix: define the function main, in which a program starts, in one of the sources",
    r".+@((?:GLIBC|GLIBCXX|CXXABI|GCC)_[\d.]+)": (
        "likely cause: {owner} was built for a newer system, whose libraries have {1}: use a build for this system"
    ),
    r"_?Py[A-Z_]\w*|_?THP[A-Z].*|pybind11::.+": (
        "fix: operator libraries are not linked with Python, because they run without it: move the Python bindings "
        "into a separate source, or build a Python module (PYBIND11_MODULE)"
    ),
    r"(?!.*(?:__|:)cxx11).*\bstd::(?:string\b|basic_string<char).*": (
        "likely cause: {owner} was compiled with -D_GLIBCXX_USE_CXX11_ABI=0, but PyTorch was not: remove the flag"
    ),
    r"(?:at|c10|torch)::(?:\w+::)*cuda::.+": (
        f"fix: add -ltorch_cuda -lc10_cuda, which a CUDA build of PyTorch has, to {_FLAGS}"
    ),
    # The name of a function template begins with the type that it returns, which may be PyTorch's.
    r"(?:(?:vtable|typeinfo|VTT) for )?(?:at|c10|caffe2|torch)::[^\s(]*(?:\(.*)?": (
        "likely cause: it belongs to PyTorch's unstable C++ API, and the libraries of the installed PyTorch do not "
        "export it: compile {owner} for this release, or use the stable API (opwright/*.h, torch/csrc/stable)"
    ),
    r"(?:vtable|typeinfo|VTT) for (.+)": (
        "likely cause: {1} declares a virtual function that nothing defines: define it, or make it pure (= 0)"
    ),
    r"cv::.+": f'fix: add packages=["opencv4"], or what `pkg-config --libs opencv4` prints to {_FLAGS}',
    r"__(?:a|hwa|l|m|t|ub)san_\w+": f"fix: add -fsanitize=, with the same value as for the compiler, to {_FLAGS}",
    r"(?:GOMP|omp|__kmpc)_\w+": f"fix: add -fopenmp not only to the compiler's flags, but also to {_FLAGS}",
    r"__cudaRegisterLinkedBinary\w*": (
        "fix: compile without -rdc=true, or link the device code: dlink=True in a CUDAExtension"
    ),
    r"(cublasLt|cublas|cudnn|cufft|curand|cusolver|cusparse|nvrtc)[A-Z]\w*": f"fix: add -l{{1}} to {_FLAGS}",
    r"_*cuda[A-Z]\w*": f"fix: add -lcudart to {_FLAGS}",
}
_BY_KIND = {
    Kind.DUPLICATE: (
        "fix: keep one of the definitions. If it is in a header, mark it inline; if only its own source uses it, static"
    ),
    Kind.HIDDEN: 'fix: export it with __attribute__((visibility("default"))), or link a library that exports it',
    Kind.DEVICE: (
        "fix: define it in the .cu file that calls it. Only a CUDAExtension with dlink=True links the device code of "
        "several files"
    ),
    Kind.NOT_PIC: "fix: compile {owner} with -fPIC. If you cannot, link a shared library instead",
    Kind.UNREADABLE: "fix: replace it; `file {name}` prints what it contains",
    Kind.NO_LIBRARY: (
        "fix: install its development package (on Debian and Ubuntu, its name ends in -dev), or add the folder that "
        "contains the file: with -LFOLDER in the linker's flags, or in the environment variable LIBRARY_PATH"
    ),
    Kind.NO_FILE: "fix: correct its path in the linker's flags",
    Kind.KILLED: (
        "likely cause: the machine ran out of memory: free some, or start fewer processes at the same time (MAX_JOBS=1)"
    ),
}


def hint(fault: Fault, *, is_authors: bool) -> str:
    """What to do about `fault`: a fix, or the likely cause if it is not certain.

    Args:
        fault: the error.
        is_authors: whether the objects are compiled from the user's sources; otherwise from opwright's own.
    """
    place = fault.places[0] if fault.places else Place("the code")
    owner = place.archive or place.source or place.file
    if fault.kind is not Kind.UNDEFINED:
        return _BY_KIND[fault.kind].format(owner=owner, name=fault.name.partition("(")[0])
    if fault.library:
        name = re.fullmatch(r"lib(.+?)\.so[.\d]*", Path(fault.library).name)
        return f"fix: add {f'-l{name[1]}' if name else fault.library} to {_FLAGS}"
    for pattern, text in _BY_SYMBOL.items():
        if found := re.fullmatch(pattern, fault.name):
            return text.format(*(found[0], *found.groups()), owner=owner)
    return _without(place, is_authors=is_authors)


def _without(place: Place, *, is_authors: bool) -> str:
    """What to do about a symbol whose name shows nothing."""
    if place.archive:
        archive = Path(place.archive)
        names = [name for name in (archive.stem, archive.stem.removeprefix("lib")) if _has_package(archive, name)]
        listed = f" (`pkg-config --static --libs {names[0]}` lists them)" if names else ""
        libraries = f"the libraries that {archive.name} itself requires after it{listed}"
        return f"fix: link {libraries}, or link {archive.stem}.so instead of it"
    if ".so" in place.file:
        return f"fix: link the library that defines it, which {place.file} requires, too"
    if not is_authors:
        return "likely cause: the headers and the library of a package are of different versions: reinstall both"
    return (
        f"fix: add the source that defines it to sources=, or its library to packages= or, as -lNAME, to {_FLAGS}. The "
        "definition must have the same namespace, signature and C++ ABI (_GLIBCXX_USE_CXX11_ABI); a C function is "
        'declared extern "C"'
    )


def _has_package(archive: Path, name: str) -> bool:
    folders = [archive.parent / "pkgconfig", *map(Path, filter(None, os.environ.get("PKG_CONFIG_PATH", "").split(":")))]
    return any((folder / f"{name}.pc").is_file() for folder in folders)
