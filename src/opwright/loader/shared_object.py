"""Opens shared objects, which register their operators in this process."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import re
import threading
from typing import TYPE_CHECKING

import torch

from opwright.builder.symbols import defined_namespaces
from opwright.errors import LoadError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable
    from pathlib import Path
    from types import ModuleType

_lock = threading.RLock()
_opened: dict[Path, set[str]] = {}


def open_operators(path: Path) -> set[str]:
    """Open the shared object at `path`, which registers its operators.

    Opening the same file again has no effect.

    Returns:
        The namespaces that it defines.

    Raises:
        LoadError: a namespace is taken, a dependency is missing, or a registration failed.
    """
    path = path.resolve()
    with _lock:
        if path not in _opened:
            defined = defined_namespaces(path)
            namespaces = set(defined)
            # Checked first: a second definition ends the process within dlopen, where no exception can be caught.
            _check_once(defined, path)
            check_free(namespaces, path)
            try:
                torch.ops.load_library(path)
            except OSError as error:
                # torch's message has no reason; the message of the dynamic loader is in the cause.
                raise LoadError(_causes(path, str(error.__cause__ or error))) from error
            _check_registered(path)
            _opened[path] = namespaces
        return _opened[path]


def check_free(namespaces: Iterable[str], path: Path) -> None:
    """Check that the `namespaces` that `path` is about to define are not defined yet.

    Raises:
        LoadError: one is taken; the message names the library that defines it.
    """
    for namespace in sorted(namespaces):
        where = _taken(namespace)
        if where is not None:
            msg = (
                f"the namespace {namespace!r} that {path} defines is already taken in this process, {where}. "
                "Only one library can define a namespace: give this one another name, or start a new process to "
                "load a new build of the same library"
            )
            raise LoadError(msg)


def _check_once(defined: Counter[str], path: Path) -> None:
    for namespace, count in sorted(defined.items()):
        if count > 1:
            msg = (
                f"{path} defines the namespace {namespace!r} {count} times, and only one definition can be loaded: "
                "keep one TORCH_LIBRARY, and use TORCH_LIBRARY_FRAGMENT in other sources. Where CMake builds a library "
                "with an op.py, opwright adds a definition of its own: remove yours"
            )
            raise LoadError(msg)


def import_module(name: str, path: Path) -> ModuleType:
    """Import the Python module `name` from the shared object at `path`.

    Raises:
        LoadError: it is not a Python module of that name, or a dependency is missing.
    """
    with _lock:
        if path.resolve() not in _opened:
            defined = defined_namespaces(path)
            _check_once(defined, path)
            check_free(defined, path)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            msg = f"{path} cannot be imported: expected the file name of a Python module, which ends in .so"
            raise LoadError(msg)
        try:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except ImportError as error:
            raise LoadError(_causes(path, str(error))) from error
        _opened[path.resolve()] = set()
        return module


def _taken(namespace: str) -> str | None:
    """Where `namespace` is defined; None if it is not."""
    try:
        # The dispatcher has no query for this: define the namespace for a moment, which fails if it is taken.
        torch.library.Library(namespace, "DEF")._destroy()  # noqa: SLF001  otherwise only garbage collection ends it
    except ValueError:
        return "by PyTorch itself"
    except RuntimeError as error:
        place = re.search(r"Previous registration of \w+ was registered at (\S+?);", str(error))
        opened = [str(path) for path, defined in _opened.items() if namespace in defined]
        return f"by {opened[0]}" if opened else f"at {place[1]}" if place else "by another library"
    return None


def _check_registered(path: Path) -> None:
    with contextlib.suppress(AttributeError):  # built without opwright/op.h: it has no such function
        ask = ctypes.CDLL(str(path)).opwright_load_error
        ask.restype = ctypes.c_char_p
        error = ask()
        if error is not None:
            msg = f"{path} did not register its operators: {error.decode(errors='replace')}"
            raise LoadError(msg)


def _causes(path: Path, reason: str) -> str:
    causes = []
    if symbol := re.search(r"undefined symbol: (\S+)", reason):
        causes.append(
            f"it calls {symbol[1]}, which none of its libraries defines: link one that does (packages= or ldflags=)"
        )
        causes.append("it was built against another PyTorch: build it again with the one that is installed")
    if needed := re.search(r"(\S+): cannot open shared object file", reason):
        causes.append(
            f"it needs {needed[1]}, which the dynamic loader does not find: install it, or add its folder to "
            "LD_LIBRARY_PATH"
        )
    if "cuda" in reason.lower() and torch.version.cuda is None:
        causes.append("it contains CUDA code, and this PyTorch is a CPU build: install a CUDA build of torch")
    if "PyInit_" in reason:
        causes.append(
            "it is not a Python module of that name: bind one with PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), "
            "or pass is_python_module=False"
        )
    listed = "".join(f"\n  {number}. {cause}" for number, cause in enumerate(causes, 1))
    return f"{path} cannot be loaded: {reason}" + (f"\nLikely causes:{listed}" if listed else "")
