"""Decides whether a call is cheap enough to make: its reference is first run without numbers."""

from __future__ import annotations

import contextlib
import logging
import math
import signal
import threading
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from opwright.spec import Op

_MOST_ELEMENTS = 2**24
_SECONDS = 2.0
# Numbers up to this cannot make a call expensive.
_HARMLESS = 64
# Neither can tensors with the first number of elements. With more than the second number, a call is made only if its
# reference can be run without numbers.
_FEW_ELEMENTS = 2**11
_MANY_ELEMENTS = 2**18


class _TooExpensive(BaseException):
    """Raised within a reference; not an Exception, which it might catch."""


class _SizeLimit(TorchDispatchMode):
    """Raises at the first large tensor."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in pytree.tree_leaves(made):
            # A size that depends on values is unknown, and counts as 1.
            if isinstance(tensor, Tensor) and math.prod(n for n in tensor.shape if isinstance(n, int)) > _MOST_ELEMENTS:
                raise _TooExpensive
        return made


def is_affordable(op: Op, arguments: dict[str, Any]) -> bool:
    """Whether the reference makes no large tensors and ends soon; False if that is unknown."""
    leaves = pytree.tree_leaves(arguments)
    has_large_number = any(map(_is_large, leaves))
    elements = sum(leaf.numel() for leaf in leaves if isinstance(leaf, Tensor))
    if not has_large_number and elements <= _FEW_ELEMENTS:
        return True
    mode = FakeTensorMode(static_shapes=True, shape_env=ShapeEnv())
    fake = pytree.tree_map_only(Tensor, mode.from_tensor, arguments)
    positional, keywords = op.spread(fake)
    try:
        with _time_limit(), _suppress_log(), _SizeLimit(), mode:  # type: ignore[no-untyped-call]
            op.reference(*positional, **keywords)
    except _TooExpensive:
        return False
    except Exception as error:
        # The cost of a branch that depends on numbers is unknown; other errors reject the call, which costs nothing.
        is_unknown = "data-dependent" in str(error).lower() or "DataDependent" in type(error).__name__
        return not is_unknown or (not has_large_number and elements <= _MANY_ELEMENTS)
    return True


def _is_large(value: Any) -> bool:
    return isinstance(value, (int, float)) and not abs(value) <= _HARMLESS


@contextlib.contextmanager
def _suppress_log() -> Iterator[None]:
    """Suppress the log of calls that PyTorch rejects, a traceback on stderr for each."""
    log = logging.getLogger(FakeTensorMode.__module__)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Raise if the block takes too long. Works only in the main thread, which alone receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  the arguments of a signal handler
        raise _TooExpensive

    before = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)
