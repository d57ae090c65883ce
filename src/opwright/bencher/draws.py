"""Draws the arguments of one size with several seeds, and determines whether their elements may be exchanged."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from opwright.bencher.storages import address
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.spec import Make, Op

_RANDOM = frozenset({"randn", "rand", "randint"})
# Functions of one tensor whose result has one element per element of the tensor.
_ELEMENTWISE = re.compile(
    "abs|add_?|bfloat16|clamp_?|clone|contiguous|detach|div_?|double|exp_?|float|half|long|mul_?|neg|pow|sigmoid|sqrt|"
    "sub_?|tanh|to|__r?(add|mul|sub)__|__(truediv|neg|pow)__"
)
# Functions that read no elements; if they return a tensor, it is a view.
_READS_NOTHING = re.compile(
    "__get__|__getitem__|__len__|dim|expand|flatten|is_complex|is_floating_point|narrow|ndimension|numel|permute|"
    "reshape|select|size|squeeze|stride|t|transpose|unsqueeze|view"
)


@dataclass(frozen=True)
class Draw:
    """The arguments of one size, drawn with one seed.

    Attributes:
        arguments: the arguments, by name.
        independent: the storages whose elements are independent random numbers of one distribution, by address.
    """

    arguments: dict[str, Any]
    independent: frozenset[int]


class Draws:
    """Draws the arguments of one size of an operator.

    Args:
        op: the operator.
        number: the number of the size among the operator's sizes, from 0.
        make: returns the `Make` for a seed.
    """

    def __init__(self, op: Op, number: int, make: Callable[[int], Make]) -> None:
        self._op = op
        self._number = number
        self._make = make

    def draw(self, seed: int) -> Draw:
        """The arguments with this seed."""
        with _Origins() as origins:
            size = next(itertools.islice(self._op.sizes(self._make(seed)), self._number, None))
        arguments = self._op.bind(size.call)
        return Draw(arguments, origins.independent(arguments))


class _Origins(TorchFunctionMode):
    """Tracks random numbers from their draw to the arguments.

    Elements of a tensor may be exchanged for those of another draw if each was drawn independently, and no other
    argument, such as the indices that sort them or their sum, was computed from them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._origins: dict[int, int] = {}
        # Keeps tensors alive: the address of a freed one may be reused.
        self._alive: list[Tensor] = []
        self._was_read = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        given = derive.tensors((args, kwargs))
        known = [self._origins[address(tensor)] for tensor in given if address(tensor) in self._origins]
        if name in _RANDOM:
            self._track(result, len(self._alive))
        elif known and _ELEMENTWISE.fullmatch(name) and len(given) == 1:
            self._track(result, known[0])
        elif known and (not _READS_NOTHING.fullmatch(name) or len(given) > 1):
            self._was_read = True
        elif known and isinstance(result, Tensor) and address(result) not in self._origins:
            self._track(result, known[0])  # the reshape copied
        return result

    def independent(self, arguments: dict[str, Any]) -> frozenset[int]:
        """The addresses of the storages whose elements may be exchanged."""
        used = {address(tensor) for tensor in derive.tensors(arguments)}
        origins = [self._origins[one] for one in used if one in self._origins]
        if self._was_read or len(set(origins)) < len(origins):
            return frozenset()
        return frozenset(used & self._origins.keys())

    def _track(self, tensor: Tensor, origin: int) -> None:
        self._origins[address(tensor)] = origin
        self._alive.append(tensor)
