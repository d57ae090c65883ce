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
    """Raises at the first tensor of more elements."""

    def __init__(self, most_elements: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._most = most_elements

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in pytree.tree_leaves(made):
            # A size that depends on values is unknown, and counts as 1.
            if isinstance(tensor, Tensor) and math.prod(n for n in tensor.shape if isinstance(n, int)) > self._most:
                raise _TooExpensive
        return made


class _SizeLimitAhead(TorchDispatchMode):
    """Raises before a large tensor is made: each operator is run without numbers first."""

    def __init__(self, most_elements: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._most = most_elements
        self._without_numbers = FakeTensorMode(static_shapes=True, shape_env=ShapeEnv())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # An operator that cannot be run without numbers, as `item` cannot, makes no large tensor.
        with contextlib.suppress(Exception), _SizeLimit(self._most), self._without_numbers as mode:
            fake_args, fake_kwargs = pytree.tree_map_only(Tensor, mode.from_tensor, (args, kwargs))
            func(*fake_args, **fake_kwargs)
        return func(*args, **kwargs)


def is_affordable(op: Op, arguments: dict[str, Any], most_elements: int = _MOST_ELEMENTS) -> bool:
    """Whether the reference makes no tensor of more than `most_elements` and ends soon; False if that is unknown."""
    leaves = pytree.tree_leaves(arguments)
    has_large_number = any(map(_is_large, leaves))
    elements = sum(leaf.numel() for leaf in leaves if isinstance(leaf, Tensor))
    if not has_large_number and elements <= _FEW_ELEMENTS:
        return True
    mode = FakeTensorMode(static_shapes=True, shape_env=ShapeEnv())
    fake = pytree.tree_map_only(Tensor, mode.from_tensor, arguments)
    try:
        _run_reference(op, fake, _SizeLimit(most_elements), mode)
    except _TooExpensive:
        return False
    except Exception as error:
        if not _depends_on_numbers(error):
            return True  # other errors reject the call, which costs nothing
        if elements > _MANY_ELEMENTS:
            return False
        return not has_large_number or _is_affordable_with_numbers(op, arguments, most_elements)
    return True


def _is_affordable_with_numbers(op: Op, arguments: dict[str, Any], most_elements: int) -> bool:
    """The same, where the reference has branches that depend on numbers."""
    given = pytree.tree_map_only(Tensor, Tensor.clone, arguments)
    try:
        _run_reference(op, given, _SizeLimitAhead(most_elements))
    except _TooExpensive:
        return False
    except Exception:
        return True
    return True


def _run_reference(op: Op, arguments: dict[str, Any], *modes: TorchDispatchMode) -> None:
    positional, keywords = op.spread(arguments)
    with _time_limit(), _suppress_log(), contextlib.ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        op.reference(*positional, **keywords)


def _depends_on_numbers(error: Exception) -> bool:
    """Whether a run without numbers failed at a branch or a size that depends on them."""
    return "data-dependent" in str(error).lower() or "DataDependent" in type(error).__name__


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
