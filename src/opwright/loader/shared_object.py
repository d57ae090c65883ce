"""Opens shared objects, which register their operators in this process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from opwright.builder.symbols import (
    address_of,
    defined_namespaces,
    is_pythons,
    module_names,
    registers_without_opwright,
)
from opwright.errors import LoadError
from opwright.loader.entries import kept_without_schema
from opwright.loader.kernels import operator_names
from opwright.loader.python_module import imported_from
from opwright.loader.rehearsal import rehearse

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

# Held while shared objects are opened and replaced.
LOADING = threading.RLock()

# Registered shared objects, by the path under which they were built.
_opened: dict[Path, SharedObject] = {}
# The file names that the dynamic loader has opened, whether or not they are registered: it opens each only once.
_known_names: set[Path] = set()


@dataclass(frozen=True)
class SharedObject:
    """A shared object whose operators are registered in this process.

    Attributes:
        path: the file.
        state: identifies the file's contents, to detect a replaced file.
        handle: the dynamic loader's handle.
        registers_itself: whether it registers anything with PyTorch's own macros.
        identity: the address that identifies it among objects with static constructors; None if it is stripped.
        namespaces: the namespaces that it defines.
        operators: the operators that it defines, such as `mine::scale`.
    """

    path: Path
    state: tuple[int, ...]
    handle: ctypes.PyDLL
    registers_itself: bool
    identity: int | None
    namespaces: frozenset[str]
    operators: frozenset[str]


def open_operators(path: Path) -> set[str]:
    """Open the shared object at `path`, which registers its operators.

    Opening the same file again has no effect.

    Returns:
        The namespaces that it defines.

    Raises:
        LoadError: a namespace is taken, a dependency is missing, or a registration failed.
    """
    return set(open_object(path).namespaces)


def open_object(path: Path) -> SharedObject:
    """Like `open_operators`, but returns the shared object."""
    path = path.resolve()
    with LOADING:
        if (known := _opened.get(path)) is not None and is_open(known, path):
            return known
        return _opening(path, torch.ops.load_library)


def is_open(opened: SharedObject, path: Path) -> bool:
    """Whether `opened` is the file that is currently at `path`.

    Raises:
        LoadError: there is no file at `path`.
    """
    path = path.resolve()
    return opened.path == path and opened.state == _state(path)


def import_module(name: str, path: Path) -> tuple[ModuleType, SharedObject]:
    """Import the Python module `name` from the shared object at `path`.

    Raises:
        LoadError: it is not a Python module of that name, or a dependency is missing.
    """
    path = path.resolve()
    with LOADING:
        modules: list[ModuleType] = []
        opened = _opening(path, lambda place: modules.append(imported_from(place, name)))
        return modules[0], opened


def _opening(path: Path, act: Callable[[Path], object]) -> SharedObject:
    defined = defined_namespaces(path)
    state = _state(path)
    registers_itself = registers_without_opwright(path)
    offset = address_of(path, "__dso_handle")
    # Checked first, because a second definition terminates the process within dlopen, where no exception can be caught.
    _check_once(defined, path)
    check_free(defined, path)
    before = operator_names() - kept_without_schema()
    with _new_name(path) as name:
        if registers_itself:
            rehearse(lambda: act(name), f"opening {path}")
        failure = _failure(act, name)
        handle = _handle(name)
    # torch's message has no reason; the dynamic loader's message is in the cause.
    error = failure and LoadError(_causes(path, str(failure.__cause__ or failure)))
    if handle is None:
        raise error or LoadError(_causes(path, "the dynamic loader did not keep it")) from failure
    identity = None if offset is None else _load_address(handle) + offset
    operators = frozenset(operator_names() - before - kept_without_schema())
    opened = SharedObject(path, state, handle, registers_itself, identity, frozenset(defined), operators)
    try:
        if error is not None:
            raise error from failure
        _check_registered(path, handle)
    except LoadError:
        unregister(opened)
        raise
    _opened[path] = opened
    return opened


def _failure(act: Callable[[Path], object], name: Path) -> Exception | None:
    try:
        act(name)
    except (OSError, ImportError) as error:
        return error
    return None


def _handle(name: Path) -> ctypes.PyDLL | None:
    """The dynamic loader's handle of an open file, which is open even if a module in it could not be imported."""
    with contextlib.suppress(OSError):
        return ctypes.PyDLL(str(name), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    return None


@contextlib.contextmanager
def _new_name(path: Path) -> Iterator[Path]:
    """The name under which to open the file: `path`, or a copy with a name that the dynamic loader has not opened.

    The dynamic loader keeps opened files: it neither reads a replaced file nor runs a constructor again.
    """
    if path not in _known_names:
        _known_names.add(path)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="opwright-") as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        yield copy


def _state(path: Path) -> tuple[int, ...]:
    try:
        now = path.stat()
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise LoadError(msg) from error
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


def unregister(opened: SharedObject) -> None:
    """Unregister the operators of a shared object. Its code stays in the process, because tensors may refer to it.

    Raises:
        LoadError: it registers operators in a way that cannot be undone.
    """
    registers_by_opwright = hasattr(opened.handle, "opwright_unregister")
    needs_destructors = opened.registers_itself or (bool(opened.operators) and not registers_by_opwright)
    if needs_destructors and opened.identity is None:
        msg = (
            f"the operators of {opened.path} cannot be replaced, because its symbols were stripped: build it without "
            "-s, or start a new process"
        )
        raise LoadError(msg)
    if registers_by_opwright:
        opened.handle.opwright_unregister()
    if needs_destructors:
        # The destructors of its static objects unregister everything that PyTorch's macros have registered.
        finalize = ctypes.PyDLL(None)["__cxa_finalize"]
        finalize.argtypes, finalize.restype = (ctypes.c_void_p,), None
        finalize(opened.identity)
    _opened.pop(opened.path, None)


class _LinkMap(ctypes.Structure):
    """The first fields of `struct link_map` in <link.h>."""

    _fields_ = (("address", ctypes.c_size_t), ("name", ctypes.c_char_p))


def _load_address(handle: ctypes.PyDLL) -> int:
    # A handle of glibc or musl is a pointer to the link_map.
    link_map = ctypes.cast(ctypes.c_void_p(handle._handle), ctypes.POINTER(_LinkMap))
    return int(link_map.contents.address)


def check_free(namespaces: Iterable[str], path: Path) -> None:
    """Check that the `namespaces` that `path` is about to define are free.

    Raises:
        LoadError: one is taken; the message names the library that defines it.
    """
    for namespace in sorted(namespaces):
        where = _taken(namespace)
        if where is not None:
            msg = (
                f"the namespace {namespace!r} that {path} defines is already taken in this process, {where}. "
                "Only one library can define a namespace: rename this one. A new build replaces the former one if it "
                "is opened in the same way: by opwright.open of the same op.py, or by load under the same name"
            )
            raise LoadError(msg)


def _check_once(defined: Counter[str], path: Path) -> None:
    for namespace, count in sorted(defined.items()):
        if count > 1:
            msg = (
                f"{path} defines the namespace {namespace!r} {count} times, but only one definition can be loaded: "
                "keep one TORCH_LIBRARY, and use TORCH_LIBRARY_FRAGMENT in other sources. Where CMake builds a library "
                "with an op.py, opwright adds its own definition: remove yours"
            )
            raise LoadError(msg)


def _taken(namespace: str) -> str | None:
    """Where `namespace` is defined; None if it is not."""
    try:
        # The dispatcher has no query for this: define the namespace temporarily, which fails if it is taken. Without
        # _destroy, it would exist until garbage collection.
        torch.library.Library(namespace, "DEF")._destroy()
    except ValueError:
        return "by PyTorch itself"
    except RuntimeError as error:
        place = re.search(r"Previous registration of \w+ was registered at (\S+?);", str(error))
        opened = [str(path) for path, one in _opened.items() if namespace in one.namespaces]
        return f"by {opened[0]}" if opened else f"at {place[1]}" if place else "by another library"
    return None


def _check_registered(path: Path, handle: ctypes.PyDLL) -> None:
    with contextlib.suppress(AttributeError):  # built without opwright/op.h, which defines the function
        ask = handle.opwright_load_error
        ask.restype = ctypes.c_char_p
        error = ask()
        if error is not None:
            msg = f"{path} did not register its operators: {error.decode(errors='replace')}"
            raise LoadError(msg)


def _causes(path: Path, reason: str) -> str:
    causes = []
    symbol = re.search(r"undefined symbol: (\S+)", reason)
    if symbol and is_pythons(symbol[1]):
        causes.append(
            f"its operators use {symbol[1]} of Python, with which operator libraries are not linked: move the Python "
            "bindings into a separate source, or load it as a module with opwright.load"
        )
    elif symbol:
        causes.append(
            f"it calls {symbol[1]}, which none of its libraries defines: link one that does (packages= or ldflags=)"
        )
        causes.append("it was built against another PyTorch: rebuild it with the installed one")
    if needed := re.search(r"(\S+): cannot open shared object file", reason):
        causes.append(
            f"it needs {needed[1]}, which the dynamic loader does not find: install it, or add its folder to "
            "LD_LIBRARY_PATH"
        )
    if "cuda" in reason.lower() and torch.version.cuda is None:
        causes.append("it contains CUDA code, but this PyTorch is a CPU build: install a CUDA build of torch")
    if "is already registered" in reason:
        causes.append(
            "pybind11 binds a C++ type once per process, and an earlier build of the module has bound it: bind it "
            "with py::module_local(), or load the new build in a new process"
        )
    if "PyInit_" in reason:
        causes.append(
            f"it is a Python module with another name ({', '.join(module_names(path))}): define it with "
            "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), or pass that name"
        )
    listed = "".join(f"\n  {number}. {cause}" for number, cause in enumerate(causes, 1))
    return f"{path} cannot be loaded: {reason}" + (f"\nLikely causes:{listed}" if listed else "")
