"""How far rounding can move each element of a result: the oracle's results for numbers changed in the last place."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from opwright.spec import derive
from opwright.spec.schema import schema_of_overload
from opwright.spec.time_limit import LIMIT_S, TimeLimitError, time_limit

# In addition to a draw that enlarges all magnitudes and one that reduces them.
_RANDOM_DRAWS = 4
# Kernels of 16-bit dtypes read exact numbers, compute in float32, and round what they store.
_COMPUTED = torch.finfo(torch.float32).eps
# Keeps the moves of intermediate results independent of those of the arguments.
_SEED_OF_ROUNDINGS = 1000
# The relative size of the small draws. The results of a smooth function change in proportion to its arguments; where
# they do not, the function jumps.
SMALL = 2.0**-10
# A sequential accumulation of N terms loses about sqrt(N) / 4 times as much as rounding each term once.
_SEQUENTIAL = 4.0
# Roundings of equal terms have equal signs, and together lose up to N / 64 times as much.
_SEQUENTIAL_EQUAL = 64.0
# Floating-point tensors of integers up to this magnitude are labels or masks.
_LARGEST_LABEL = 2

# Operators that move, select or compare numbers, and so do not round. Changing their results would destroy ties and
# equality.
_EXACT_NAMES = """
abs absolute alias alias_copy amax amin aminmax arange argmax argmin argsort as_strided as_strided_scatter
atleast_1d bernoulli broadcast_tensors bucketize cat ceil chunk clamp clamp_max clamp_min clone complex concat
concatenate conj conj_physical constant_pad_nd contiguous copy copysign cummax cummin cummax_helper cummin_helper
detach diag diag_embed diagonal diagonal_copy diagonal_scatter embedding empty empty_like empty_strided expand
expand_copy eye fill flatten flip floor fmax fmin frac full full_like gather hardtanh imag index index_copy
index_fill index_put index_select kthvalue leaky_relu lift lift_fresh linspace logspace masked_fill masked_scatter
masked_select max max_pool2d_with_indices max_pool3d_with_indices maximum median min minimum mode movedim msort
nan_to_num nanmedian narrow neg new_empty new_empty_strided new_full new_ones new_zeros nonzero one_hot ones
ones_like pad permute pixel_shuffle pixel_unshuffle put rand rand_like randn randn_like real reflection_pad1d
reflection_pad2d reflection_pad3d relu repeat repeat_interleave replication_pad1d replication_pad2d
replication_pad3d reshape resize roll rot90 round scalar_tensor scatter searchsorted select select_backward
select_scatter set sgn sign slice slice_backward slice_scatter sort split squeeze stack t take take_along_dim
threshold tile to to_copy topk transpose tril triu trunc unbind unfold unique unsqueeze unsafe_index unsafe_split
unsafe_view upsample_nearest1d upsample_nearest2d upsample_nearest3d view view_as_complex view_as_real view_copy
where zero zeros zeros_like
"""
_EXACT = frozenset(_EXACT_NAMES.split())
# Operators that add the numbers that they move if their fourth argument is true.
_ACCUMULATE = {"index_put", "put"}

# Operators that add products to an argument, with the index of that argument. A kernel may round the products before it
# adds them.
_ADDED_TO = {
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm", "addr", "addcmul", "addcdiv"), 0),
    "convolution": 2,
}

# Computes the flat results for arguments that a function changes.
Evaluate = Callable[[Callable[[Any], Any]], Sequence[Any]]


@dataclass
class Nearby:
    """The oracle's results near the arguments of a call, computed when they are first needed.

    Stochastic arithmetic: in each of several draws, every floating-point number of the arguments and every intermediate
    result is moved by one unit in the last place. For results of 16 bits, the arguments are moved by a unit of float32,
    in which their kernels compute. The draws show how much of a difference rounding explains at each element.

    Attributes:
        evaluate: computes the flat results of the oracle for changed arguments.
        arguments: the arguments of the call.
        in_float64: whether the oracle computes in float64; otherwise its precision is too low for small draws.
    """

    evaluate: Evaluate
    arguments: Any
    in_float64: bool = True
    limit_s: float = LIMIT_S
    _drawn: dict[tuple[float, float], list[Sequence[Any]]] = field(default_factory=dict)
    _accumulates: bool = False

    @property
    def eps(self) -> float:
        """The coarsest relative precision among the floating-point arguments; that of float32 if there are none."""
        found = [torch.finfo(tensor.dtype).eps for tensor in derive.tensors(self.arguments) if _can_move(tensor)]
        return max(found, default=torch.finfo(torch.float32).eps)

    @property
    def largest(self) -> float:
        """The largest finite magnitude among the floating-point arguments."""
        found = [tensor for tensor in derive.tensors(self.arguments) if _can_move(tensor) and tensor.numel()]
        wide = (one.detach().to(torch.complex128 if one.is_complex() else torch.float64).abs() for one in found)
        return max((float(one.nan_to_num(0.0, 0.0, 0.0).max()) for one in wide), default=0.0)

    def accumulation(self, shape: Sequence[int]) -> float:
        """The loss of a sequential accumulation, relative to that of one rounding, for a result of this shape.

        It is 1 if no operator accumulated in the draws so far. The number of terms is unknown; the estimate is the
        largest dimension, or the number of elements of an argument per index of the result's largest dimension,
        whichever is larger.
        """
        if not self._accumulates:
            return 1.0
        tensors = [tensor for tensor in derive.tensors(self.arguments) if _can_move(tensor)]
        longest = max((*shape, 1))
        terms = max((max(*tensor.shape, tensor.numel() // longest) for tensor in tensors if tensor.dim()), default=1)
        has_equal_terms = any(tensor.numel() >= terms and _is_constant(tensor) for tensor in tensors)
        return max(1.0, math.sqrt(terms) / _SEQUENTIAL, terms / _SEQUENTIAL_EQUAL if has_equal_terms else 0.0)

    def leaf(self, at: int, eps: float, scale: float = 1.0) -> list[Tensor]:
        """The result at index `at` in every draw of relative size `eps * scale`."""
        found = [results[at] for results in self.draws(eps, scale) if at < len(results)]
        return [one if isinstance(one, Tensor) else torch.tensor([one]) for one in found if one is not None]

    def draws(self, eps: float, scale: float = 1.0) -> list[Sequence[Any]]:
        """The results of every draw of relative size `eps * scale` in which the oracle accepts the arguments."""
        key = (eps, scale)
        if key not in self._drawn:
            signs: list[int | None] = [1, -1, *[None] * _RANDOM_DRAWS]
            self._drawn[key] = []
            with contextlib.suppress(TimeLimitError):
                for number, sign in enumerate(signs):
                    if results := self._draw(eps, scale, sign, number):
                        self._drawn[key].append(results)
        return self._drawn[key]

    def _draw(self, eps: float, scale: float, sign: int | None, number: int) -> Sequence[Any]:
        generator = torch.Generator().manual_seed(number)
        has_labels = _has_labels(self.arguments)
        unit = min(eps, _COMPUTED) if self.in_float64 else eps
        moved: dict[tuple[Any, ...], Tensor] = {}

        def move(value: Any) -> Any:
            if isinstance(value, float):
                return value + scale * (_rounded(value, unit) - value)
            if not isinstance(value, Tensor) or not _can_move(value) or (has_labels and _is_label(value)):
                return value.clone() if isinstance(value, Tensor) else value  # the oracle may write to it
            # Arguments that are the same tensor stay the same.
            key = (value.data_ptr(), value.dtype, value.shape, value.stride(), value.is_conj())
            if key not in moved or value.numel() == 0:
                moved[key] = _moved(value, unit * scale, sign, generator, in_float64=self.in_float64)
            return moved[key]

        def change(value: Any) -> Any:
            with _disable_current_modes():  # moving an argument is not part of the oracle's computation
                return move(value)

        try:
            with time_limit(self.limit_s), _Roundings(eps * scale, _SEED_OF_ROUNDINGS + number) as roundings:
                results = list(self.evaluate(change))
        except Exception:  # noqa: BLE001  a reference may reject numbers that it accepted before
            return []
        self._accumulates |= roundings.accumulates
        return results


class _Roundings(TorchDispatchMode):
    """Moves the results of PyTorch's operators at random by about one unit in the last place.

    Args:
        size: the relative change.
        seed: the seed of the moves.

    Attributes:
        accumulates: whether an operator was called whose results may be sums.
    """

    def __init__(self, size: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.accumulates = False
        self._size = size
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator, and move its results."""
        made = func(*args, **(kwargs or {}))
        name = _name(func)
        if func.is_view or (name in _EXACT and not (name in _ACCUMULATE and any(args[3:4]))):
            return made
        if schema_of_overload(func).is_mutable:
            for tensor in filter(_can_move, derive.tensors(made)):
                tensor.mul_(1 + self._size * self._units(tensor))
        elif name in _ADDED_TO and isinstance(added := args[_ADDED_TO[name]], Tensor) and _can_move(made):
            products = made - (added.view(-1, *[1] * (made.dim() - 2)) if name == "convolution" else added)
            moves = self._rounded(products) - products
            made = self._rounded(made) + moves.where(moves.isfinite(), 0.0)
        elif isinstance(made, Tensor):
            made = self._rounded(made)
        else:
            made = pytree.tree_map_only(Tensor, self._rounded, made)
        self.accumulates |= torch.Tag.pointwise not in func.tags and any(map(_can_move, derive.tensors(made)))
        return made

    def _rounded(self, tensor: Tensor) -> Tensor:
        return tensor * (1 + self._size * self._units(tensor)) if _can_move(tensor) else tensor

    def _units(self, tensor: Tensor) -> Tensor:
        return _moves(tensor.shape, self._generator).to(tensor.device, tensor.dtype)


def _moves(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Random moves in units, of mean square 1; signs of a few numbers would often be equal in all draws."""
    return math.sqrt(12) * (torch.rand(tuple(shape), generator=generator, dtype=torch.float64) - 0.5)


@cache
def _name(func: Any) -> str:
    """The name of an operator without its namespace and the underscores around it: `add` of `aten::add_`."""
    name: str = schema_of_overload(func).name
    return name.partition("::")[2].strip("_")


def _can_move(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and (tensor.is_floating_point() or tensor.is_complex())


def _has_labels(arguments: Any) -> bool:
    """Whether tensors of small integers are labels, next to other numbers: the oracle may test whether they equal 1."""
    return not all(_is_label(tensor) for tensor in derive.tensors(arguments) if _can_move(tensor))


def _is_label(tensor: Tensor) -> bool:
    return not tensor.is_complex() and bool(((tensor == tensor.round()) & (tensor.abs() <= _LARGEST_LABEL)).all())


def _is_constant(tensor: Tensor) -> bool:
    """Whether all numbers are equal, and not small integers, whose sums are exact."""
    first = tensor.flatten()[:1]
    return bool((tensor == first).all()) and not _is_label(derive.widened(first))  # 8-bit floats have no round()


def _moved(tensor: Tensor, size: float, sign: int | None, generator: torch.Generator, *, in_float64: bool) -> Tensor:
    """`tensor` with every nonzero number moved by the relative `size`, denormals by as much as the smallest normal."""
    wide: Tensor = tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)
    units: Any = sign
    if sign is None:
        units = _moves(tensor.shape, generator).to(wide.device)
    step = wide * size
    if not tensor.is_complex():
        least = torch.finfo(tensor.dtype).tiny * size
        step = step.where(step.abs() > least, wide.sign() * least)
    wide = wide + (units * step).where(wide.isfinite(), 0.0)
    return wide.to(wide.dtype if in_float64 else tensor.dtype)


def _rounded(value: float, eps: float) -> float:
    """`value` rounded to a precision, as in a kernel whose parameters are not doubles."""
    if value == 0 or not math.isfinite(value):
        return value
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(2 * mantissa / eps) * eps / 2, exponent)
