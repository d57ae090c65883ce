"""Decides whether a call is cheap enough to make, by first running its reference on fake tensors."""

from __future__ import annotations

import contextlib
import enum
import itertools
import logging
import math
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.checker.cases.case import Layout
from opwright.checker.cases.variation import is_integer
from opwright.spec.schema import schema_of_overload
from opwright.spec.time_limit import TimeLimitError, time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opwright.spec import Op

_MOST_ELEMENTS = 2**24
_ANY = 2**63
# The maximum number of tensors that one operator may return.
_MOST_PARTS = 2**17
# Limits in CPU time, which does not depend on other load: for one trial, and for all trials of a search.
_SECONDS = 2.0
# A reference that runs longer than this without an error counts as accepting its arguments.
_SECONDS_OF_A_LIMIT = 0.25
_ALL_SECONDS = 40.0
# The limit for a trial that calls no operator, enforced by a signal. A signal handler that raises in the middle of
# PyTorch's own code can crash the process, so trials that call operators are limited by _SECONDS, at each call.
_SECONDS_WITHOUT_A_CALL = 4.0
# Integers up to this cannot make a call expensive.
_HARMLESS = 64
# Neither can tensors with up to _FEW_ELEMENTS. With more than _MANY_ELEMENTS, a call is made only if its reference runs
# on fake tensors.
_FEW_ELEMENTS = 2**11
_MANY_ELEMENTS = 2**19
# The size of arrays outside PyTorch cannot be observed. Integers up to this do not make them too large.
_MOST_UNSEEN = 2**20
# PyTorch's operators whose results are as large as the values of a tensor.
_SIZED_BY_NUMBERS: dict[Any, Callable[[Tensor], Tensor]] = {
    torch.ops.aten.repeat_interleave.Tensor: Tensor.sum,
    torch.ops.aten.bincount.default: Tensor.amax,
}
_JOINS = (torch.ops.aten.stack.default, torch.ops.aten.cat.default)
# The errors that PyTorch raises if an operator does not support fake tensors.
_UNSUPPORTED = ("UnsupportedOperatorException", "UnsupportedFakeTensorException", "DynamicOutputShapeException")


class TooExpensiveError(BaseException):
    """Raised within the author's code; not an Exception, so that this code does not catch it."""


class _Limit(TorchDispatchMode):
    """Raises `TooExpensiveError` when an operator is called.

    Args:
        most_elements: the maximum number of elements of a tensor.
        seconds: the CPU time, from now on, after which the next call raises.
    """

    def __init__(self, most_elements: int, seconds: float = math.inf) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._most = most_elements
        self._until = time.process_time() + seconds

    def _check_time(self) -> None:
        if time.process_time() > self._until:
            raise TooExpensiveError

    def _check_sizes(self, made: Any) -> bool:
        """Raise if a result has too many elements; return whether a size depends on values, which counts as 1."""
        has_unknown_size = False
        for tensor in pytree.tree_leaves(made):
            if isinstance(tensor, Tensor) and not tensor.is_meta:  # the meta device has no memory
                known = [size for size in tensor.shape if isinstance(size, int)]
                has_unknown_size |= len(known) < tensor.dim()
                if math.prod(known) > self._most:
                    raise TooExpensiveError
        return has_unknown_size


class _SizeLimit(_Limit):
    """Raises at the first tensor with too many elements.

    Attributes:
        has_unknown_size: whether the size of a tensor depends on values.
    """

    has_unknown_size = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator, and check the size of its results."""
        self._check_time()
        _check_parts(func, args)
        made = func(*args, **(kwargs or {}))
        self.has_unknown_size |= self._check_sizes(made)
        return made


def _check_parts(func: Any, args: Any) -> None:
    """Raise if an operator splits a tensor into too many: even with fake tensors, that takes minutes."""
    aten = torch.ops.aten
    if func is aten.unbind.int:
        each, dim = 1, args[1] if len(args) > 1 else 0
    elif func in (aten.split.Tensor, aten.unsafe_split.Tensor):
        each, dim = args[1], args[2] if len(args) > 2 else 0
    else:
        return
    size = args[0].shape[dim] if args[0].dim() else 0
    if isinstance(size, int) and isinstance(each, int) and size // max(each, 1) > _MOST_PARTS:
        raise TooExpensiveError


def _new_elements(func: Any, args: Any) -> float:
    """The number of elements of the new tensor for which an operator such as `randn` is called; infinity for others."""
    if func.namespace != "aten" or any(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(args)):
        return math.inf
    names = [argument.name for argument in schema_of_overload(func).arguments[: len(args)]]
    is_new = "size" in names and "stride" not in names
    return math.prod(args[names.index("size")]) if is_new else math.inf


def _most_broadcast(args: Any) -> int:
    """The maximum number of elements of a tensor that these arguments broadcast to."""
    shapes = [leaf.shape for leaf in pytree.tree_leaves(args) if isinstance(leaf, Tensor)]
    aligned = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return math.prod(map(max, aligned))


class SizeLimitAhead(_Limit):
    """Raises before a tensor with too many elements is allocated.

    Unless the arguments show the sizes of the results, each operator first runs on fake tensors.
    """

    def __init__(self, most_elements: int, seconds: float = math.inf) -> None:
        super().__init__(most_elements, seconds)
        self._without_numbers = FakeTensorMode(static_shapes=True, shape_env=ShapeEnv())
        self._harmless: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator if its results are not too large."""
        self._check_time()
        kwargs = kwargs or {}
        elements = _SIZED_BY_NUMBERS.get(func)
        if elements is not None and args[0].numel() and float(elements(args[0].double())) > self._most:
            raise TooExpensiveError
        _check_parts(func, args)
        if func.namespace == "aten" and func.is_view:
            made = func(*args, **kwargs)
            self._check_sizes(made)
            return made
        # A loop may repeat the same call, or split a tensor and join hundreds of results.
        call = (func, _outline(args), *((name, _outline(value)) for name, value in kwargs.items()))
        if call not in self._harmless and not self._is_small(func, args):
            # An operator that does not support fake tensors, such as `item`, makes no large tensor.
            with contextlib.suppress(Exception):
                fake_args, fake_kwargs = _faked(self._without_numbers, (args, kwargs))
                with _SizeLimit(self._most), self._without_numbers:
                    func(*fake_args, **fake_kwargs)
            self._harmless.add(call)
        return func(*args, **kwargs)

    def _is_small(self, func: Any, args: Any) -> bool:
        """Whether the arguments show that no result has too many elements."""
        if func in _JOINS:
            return bool(sum(tensor.numel() for tensor in args[0]) <= self._most)
        if _new_elements(func, args) <= self._most:
            return True
        is_pointwise = func.namespace == "aten" and torch.Tag.pointwise in func.tags
        return (is_pointwise or func is torch.ops.aten._to_copy.default) and _most_broadcast(args) <= self._most


class Costs:
    """The costs of calls of an operator.

    Calls with the same shapes, dtypes and options are run on fake tensors only once.

    Args:
        op: the operator.

    Attributes:
        left_out: the number of calls that were too expensive.
    """

    def __init__(self, op: Op) -> None:
        self._op = op
        self._known: dict[Any, _Cost] = {}
        self._seconds = 0.0
        self.left_out = 0

    def is_affordable(self, arguments: dict[str, Any], most_elements: int = _MOST_ELEMENTS) -> bool:
        """Whether the reference makes no tensor with over `most_elements` and is fast enough; False if unknown."""
        started = time.process_time()
        found = self._is_affordable(arguments, most_elements)
        self._seconds += time.process_time() - started
        self.left_out += not found
        return found

    def accepts(self, arguments: dict[str, Any], device: str = "") -> bool | None:
        """Whether the reference accepts these arguments, found with fake tensors; None if they do not show it.

        Args:
            arguments: the arguments.
            device: if given, the device to assume for tensors on the meta device.
        """
        if not self._has_time():
            return None
        started = time.process_time()
        cost = _cost_without_numbers(self._op, arguments, _ANY, _SECONDS_OF_A_LIMIT, device)
        self._seconds += time.process_time() - started
        if cost in (_Cost.UNSEEN, _Cost.BY_NUMBERS):
            return None
        return cost is not _Cost.REJECTED

    def _is_affordable(self, arguments: dict[str, Any], most_elements: int) -> bool:
        leaves = pytree.tree_leaves(arguments)
        numbers = [number for leaf in leaves for number in _numbers(leaf)]
        has_large_number = any(not abs(number) <= _HARMLESS for number in numbers)
        elements = sum(leaf.numel() for leaf in leaves if isinstance(leaf, Tensor))
        if not has_large_number and elements <= _FEW_ELEMENTS:
            return True
        cost = self._without_numbers(arguments, most_elements)
        if cost is _Cost.UNSEEN and any(isinstance(number, int) and abs(number) > _MOST_UNSEEN for number in numbers):
            return False
        if cost is _Cost.BY_NUMBERS and elements > _MANY_ELEMENTS:
            return False
        if cost in (_Cost.LOW, _Cost.HIGH) or not (has_large_number or cost is _Cost.BY_NUMBERS):
            return cost is not _Cost.HIGH
        return self._has_time() and _is_affordable_with_numbers(self._op, arguments, most_elements)

    def _without_numbers(self, arguments: dict[str, Any], most_elements: int) -> _Cost:
        leaves, structure = pytree.tree_flatten(arguments)
        outline = str(structure), most_elements, *_outline(leaves)
        if outline in self._known:
            return self._known[outline]
        if not self._has_time():
            return _Cost.HIGH
        cost = _cost_without_numbers(self._op, arguments, most_elements)
        if cost is _Cost.REJECTED:  # other values or another layout may be accepted
            return _Cost.LOW
        return self._known.setdefault(outline, cost)

    def _has_time(self) -> bool:
        return self._seconds < _ALL_SECONDS


class _Cost(enum.Enum):
    """What a run on fake tensors shows."""

    LOW = enum.auto()
    HIGH = enum.auto()
    REJECTED = enum.auto()  # by the reference
    BY_NUMBERS = enum.auto()  # a branch depends on values
    UNKNOWN_SIZE = enum.auto()  # only the size of a tensor depends on values
    UNSEEN = enum.auto()  # the reference computes outside PyTorch


def _cost_without_numbers(
    op: Op, arguments: dict[str, Any], most_elements: int, seconds: float = _SECONDS, device: str = ""
) -> _Cost:
    mode = FakeTensorMode(static_shapes=True, shape_env=ShapeEnv())
    fake = _faked(mode, arguments, device)
    limit = _SizeLimit(most_elements, seconds)
    try:
        _run_reference(op, fake, limit, mode)
    except (TooExpensiveError, TimeLimitError):
        return _Cost.HIGH
    except Exception as error:
        if ".numpy() is not supported" in str(error):
            return _Cost.UNSEEN
        return _Cost.BY_NUMBERS if _depends_on_numbers(error) else _Cost.REJECTED
    return _Cost.UNKNOWN_SIZE if limit.has_unknown_size else _Cost.LOW


def _faked(mode: FakeTensorMode, values: Any, device: str = "") -> Any:
    """Replace tensors by fake ones with the same layout; those on the meta device move to `device`, if given."""

    def fake(tensor: Tensor) -> Tensor:
        if tensor.is_meta and device:
            with mode:
                return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
        # PyTorch cannot fake every view, such as a complex tensor whose base is one row of real numbers, so fake a
        # tensor with the same memory that is not a view.
        own = Layout.of(tensor).view(tensor.untyped_storage()) if tensor.layout == torch.strided else tensor
        return mode.from_tensor(own)

    return pytree.tree_map_only(Tensor, fake, values)


def _is_affordable_with_numbers(op: Op, arguments: dict[str, Any], most_elements: int) -> bool:
    """Whether a run on real tensors, which stops before it makes a large one, is affordable."""
    # On the CPU, because an invalid index on a GPU raises no error and makes all later calls of the process fail.
    given = pytree.tree_map_only(
        Tensor, lambda one: one.clone() if one.is_meta else one.to("cpu", copy=True), arguments
    )
    try:
        _run_reference(op, given, SizeLimitAhead(most_elements, _SECONDS))
    except (TooExpensiveError, TimeLimitError):
        return False
    except Exception:
        return True  # a call that is rejected with an error costs nothing
    return True


def _run_reference(op: Op, arguments: dict[str, Any], *modes: TorchDispatchMode) -> None:
    positional, keywords = op.spread(arguments)
    with time_limit(_SECONDS_WITHOUT_A_CALL), _suppress_log(), contextlib.ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        op.reference(*positional, **keywords)


def _depends_on_numbers(error: Exception) -> bool:
    """Whether a run on fake tensors failed because they have no values, or an operator has no fake kernel."""
    name, text = type(error).__name__, str(error).lower()
    return "data-dependent" in text or "DataDependent" in name or "fake impl" in text or name in _UNSUPPORTED


def _numbers(leaf: Any) -> list[int | float]:
    """The numbers in an argument that may be sizes: itself, or the largest of an integer tensor."""
    if isinstance(leaf, (int, float)):
        return [leaf]
    if not isinstance(leaf, Tensor) or leaf.is_meta or not leaf.numel() or not is_integer(leaf):
        return []
    return [int(leaf.to(torch.int64).max())]


def _outline(value: Any) -> Any:
    """A key of the properties of an argument that matter in a call with fake tensors."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype, value.device
    return tuple(map(_outline, value)) if isinstance(value, (list, tuple)) else repr(value)


@contextlib.contextmanager
def _suppress_log() -> Iterator[None]:
    """Suppress PyTorch's log of rejected calls, which prints a traceback to stderr for each."""
    log = logging.getLogger(FakeTensorMode.__module__)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
