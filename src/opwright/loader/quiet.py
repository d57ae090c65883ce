"""Blocks other threads from operators while these are replaced."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from opwright.errors import LoadError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from types import FrameType

_LONGEST_S = 60.0
_BETWEEN_LOOKS_S = 0.0005
_HANDLES = (OpOverload, OpOverloadPacket)
# Modules whose functions run as kernels, inside a call of an operator.
_KERNELS = frozenset({"opwright.loader.gradient", "opwright.loader.mutation", "opwright.spec.derive"})


@contextlib.contextmanager
def no_calls(namespaces: Collection[str]) -> Iterator[None]:
    """Wait until no thread is inside an operator of `namespaces`, and block calls until the context exits.

    It detects calls from Python: of operators, backwards, and TorchScript. A thread that calls an operator meanwhile
    waits. It does not detect native threads that call operators without Python.

    Raises:
        LoadError: a thread does not return, or this thread is itself inside an operator or a backward.
    """
    if _is_inside(inspect.currentframe(), namespaces):
        msg = (
            f"operators of {_listed(namespaces)} cannot be replaced from inside one of them, a backward or a scripted "
            "function: reload after the call has returned"
        )
        raise LoadError(msg)
    gate = _Gate(namespaces)
    with gate.closed():
        gate.wait_until_empty()
        yield


class _Gate:
    """A gate at which calls of operators wait."""

    def __init__(self, namespaces: Collection[str]) -> None:
        self._namespaces = frozenset(namespaces)
        self._opened = threading.Event()
        self._owner = threading.get_ident()

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        with contextlib.ExitStack() as undo:
            undo.callback(self._opened.set)
            for handle in _HANDLES:
                self._replace(undo, handle, "__call__", self._waits_if_ours)
            for module in (torch.autograd, torch.autograd.graph):
                self._replace(undo, module, "_engine_run_backward", self._waits)
            for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
                self._replace(undo, kind, "__call__", self._waits)
            yield

    def _replace(self, undo: contextlib.ExitStack, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = getattr(owner, name, None)
        if original is not None:
            setattr(owner, name, wrap(original))
            undo.callback(setattr, owner, name, original)

    def _waits_if_ours(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def waiting(handle: Any, /, *args: Any, **kwargs: Any) -> Any:
            if _namespace(handle) in self._namespaces:
                self._pass()
            return call(handle, *args, **kwargs)

        return waiting

    def _waits(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def waiting(*args: Any, **kwargs: Any) -> Any:
            self._pass()
            return call(*args, **kwargs)

        return waiting

    def _pass(self) -> None:
        """Wait, except in the thread that replaces the operators, and inside a call that this thread waits for."""
        if threading.get_ident() != self._owner and not _is_inside(inspect.currentframe(), self._namespaces):
            self._opened.wait()

    def wait_until_empty(self) -> None:
        end = time.monotonic() + _LONGEST_S
        while inside := self._threads_inside():
            if time.monotonic() > end:
                names = {thread.ident: thread.name for thread in threading.enumerate()}
                msg = (
                    f"operators of {_listed(self._namespaces)} were not replaced, because the thread "
                    f"{names.get(inside[0], inside[0])} has been inside a call for {_LONGEST_S:.0f} s: reload when it "
                    "has returned"
                )
                raise LoadError(msg)
            time.sleep(_BETWEEN_LOOKS_S)

    def _threads_inside(self) -> list[int]:
        frames = sys._current_frames()
        return [
            thread for thread, frame in frames.items() if thread != self._owner and _is_inside(frame, self._namespaces)
        ]


def _is_inside(frame: FrameType | None, namespaces: Collection[str]) -> bool:
    """Whether the frame or one of its callers is in a call that may run an operator of `namespaces`."""
    while frame is not None:
        code = frame.f_code
        if code in _CALLS:
            handle = frame.f_locals.get("self")
            if not isinstance(handle, _HANDLES) or _namespace(handle) in namespaces:
                return True
        elif frame.f_globals.get("__name__") in _KERNELS:
            return True
        frame = frame.f_back
    return False


def _namespace(handle: Any) -> str:
    name: str = handle._qualified_op_name if isinstance(handle, OpOverloadPacket) else handle._name
    return name.partition("::")[0]


def _listed(namespaces: Collection[str]) -> str:
    return " and ".join(sorted(map(repr, namespaces)))


def is_seen(call: Callable[..., Any]) -> None:
    """Treat threads in this function, which calls native code that may run operators, as inside."""
    _CALLS.add(call.__code__)


# The code of the functions that call native code.
_CALLS = {
    function.__code__
    for function in (
        OpOverload.__call__,
        OpOverload.redispatch,
        OpOverloadPacket.__call__,
        getattr(torch.autograd.graph, "_engine_run_backward", None),
    )
    if function is not None
}
