"""Builds and attaches the C++ autograd bridge, which registers native backwards with autograd without Python."""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.compile import build_plan, find_plan
from opwright.builder.plan import Plan
from opwright.errors import BridgeError, BuildError, LoadError, ToolchainError
from opwright.report.progress import Progress

if TYPE_CHECKING:
    from opwright.spec import Op

SOURCE = Path(__file__).resolve().parents[1] / "autograd" / "bridge.cpp"
_NAME = "opwright_autograd"
_bridges: dict[Path, ctypes.CDLL] = {}


def build_bridge() -> Path:
    """Build the bridge for the installed PyTorch (about 20 s), unless it is in the cache.

    Returns:
        The shared object. A C++ process opens it after the operator libraries, or links it.

    Raises:
        ToolchainError: no compiler was found.
        BridgeError: the bridge does not compile with PyTorch's headers.
    """
    try:
        return build_plan(_plan(), progress=Progress(_NAME)).path
    except BuildError as error:
        msg = (
            "opwright's C++ autograd bridge does not build; your library is not the cause. Try another compiler or "
            f"PyTorch release, and see `opwright doctor`. {error}"
        )
        raise BridgeError(msg, command=error.command, output=error.output) from error


def _plan() -> Plan:
    return Plan(name=_NAME, sources=(SOURCE,), abi="full")


def find_bridge() -> Path | None:
    """The bridge, if it is open, or if it is in the cache for the installed PyTorch."""
    if _bridges:
        return next(iter(_bridges))
    with contextlib.suppress(ToolchainError, BuildError):
        return find_plan(_plan())
    return None


def attach() -> bool:
    """Attach the native gradients of all operator libraries in this process to autograd.

    Returns:
        Whether they were attached. If the bridge cannot be built, warns; Python must then register the gradients.

    Raises:
        LoadError: a library's table of gradients cannot be used.
    """
    try:
        path = next(iter(_bridges), None) or build_bridge()
    except (ToolchainError, BridgeError) as error:
        reason = " ".join(str(error.__cause__ or error).splitlines()[:2])
        warnings.warn(
            f"the C++ autograd bridge cannot be built ({reason}); native gradients are registered in Python, which "
            "is slower, and a process without Python has none",
            RuntimeWarning,
            stacklevel=5,  # the caller of opwright.open
        )
        return False
    attach_gradients = _opened(path).opwright_attach_gradients
    attach_gradients.restype = ctypes.c_char_p
    error_text = attach_gradients()
    if error_text is not None:
        msg = f"the gradients of an operator library cannot be used: {error_text.decode(errors='replace')}"
        raise LoadError(msg)
    return True


def prepare() -> None:
    """Build the bridge, if possible, before a step that must not take that long."""
    if _bridges:
        return
    with contextlib.suppress(ToolchainError, BridgeError):
        build_bridge()


def detach(namespace: str) -> None:
    """Detach the gradients of all operators in a namespace whose library is about to be replaced.

    Graphs that were recorded before can still run their backward if the namespace's next library has the same
    gradient, between operators with the same schemas; otherwise they raise.
    """
    for bridge in _bridges.values():
        bridge.opwright_detach(namespace.encode())


def _opened(path: Path) -> ctypes.CDLL:
    if path not in _bridges:
        _bridges[path] = ctypes.CDLL(str(path))
    return _bridges[path]


def attach_python(op: Op, path: Path) -> None:
    """Make the bridge at `path` call the Python kernel of `op` for autograd only if it records or raises.

    That kernel is registered as a separate operator (`opwright.loader.register`).

    Raises:
        LoadError: PyTorch rejects the registration.
    """
    names = op.mutates or op.differentiable
    places = [str(at) for at, parameter in enumerate(op.parameters) if parameter.name in names]
    line = f"{op.qualified_name} {','.join(places)}{' mutates' if op.mutates else ''}"
    attach_one = _opened(path).opwright_attach_python
    attach_one.argtypes, attach_one.restype = (ctypes.c_char_p,), ctypes.c_char_p
    error_text = attach_one(line.encode())
    if error_text is not None:
        msg = f"the gradient of {op.qualified_name} cannot be registered: {error_text.decode(errors='replace')}"
        raise LoadError(msg)
