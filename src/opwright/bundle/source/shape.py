"""The notation of an input's shape: `float32[1..64,3,224,224]`, with dynamic dimensions as ranges."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opwright.bundle.format.limits import RANK
from opwright.bundle.format.manifest import Dimension
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Sequence

Size = int | Dimension

_FORM = re.compile(r"(?:([a-z]\w*)\[(.*)\]|([^\[\]]*))", flags=re.DOTALL)
# No size has more than 19 digits, and Python refuses to parse very long numbers.
_DIMENSION = re.compile(r"([0-9]{1,30})(?:(\.\.)([0-9]{1,30})?)?")
LARGEST = 2**63 - 1
# How far above its minimum a dimension without an upper limit is tested.
_BEYOND = 8
# The largest number of elements to test a model with, over all inputs.
_MOST_ELEMENTS = 2**20
_LARGEST_INTEGER = 10


@dataclass(frozen=True)
class Shape:
    """The dtype of an input, and its dimensions."""

    dtype: torch.dtype
    dims: tuple[Size, ...]

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join(map(written, self.dims))}]"

    @property
    def varies(self) -> bool:
        """Whether any dimension is a range."""
        return any(isinstance(dim, Dimension) for dim in self.dims)


def parse_shape(text: str) -> Shape:
    """Parse a shape: `float32[1..64,3,224,224]`, `1..,80` for float32, `int64[]` for a single number.

    Raises:
        BundleError: the text is not a shape.
    """
    found = _FORM.fullmatch(text.strip())
    dims = (found[2] if found[1] else found[3]) if found else None
    if found is None or dims is None:
        raise _unreadable(text)
    # `float32` alone, without brackets, is not a list of dimensions either, and is rejected below.
    listed = [part.strip() for part in dims.split(",")] if dims.strip() or not found[1] else []
    if len(listed) > RANK:
        msg = f"{text!r:.100} has {len(listed)} dimensions: expected at most {RANK}"
        raise BundleError(msg)
    return Shape(_dtype(found[1] or "float32", text), tuple(_dimension(part, text) for part in listed))


def dtype_name(dtype: torch.dtype) -> str:
    """PyTorch's name of a dtype, without `torch.`."""
    return str(dtype).removeprefix("torch.")


def shape_of(tensors: Sequence[Tensor]) -> Shape:
    """The shape that covers all of `tensors`; dimensions that differ become ranges from the smallest to the largest."""
    columns = zip(*(tensor.shape for tensor in tensors), strict=True)
    dims = (Dimension(min(sizes), max(sizes)) if len(set(sizes)) > 1 else int(sizes[0]) for sizes in columns)
    return Shape(tensors[0].dtype, tuple(dims))


def why_not(tensor: Tensor, shape: Shape) -> str:
    """Why a tensor does not have the shape; empty if it does."""
    fits = len(tensor.shape) == len(shape.dims) and all(map(_fits, tensor.shape, shape.dims))
    if fits and tensor.dtype == shape.dtype:
        return ""
    return f"{Shape(tensor.dtype, tuple(tensor.shape))} is not {shape}"


def smallest(shapes: Sequence[Shape]) -> list[tuple[int, ...]]:
    """The smallest sizes of inputs of these shapes."""
    return [tuple(dim.min if isinstance(dim, Dimension) else dim for dim in shape.dims) for shape in shapes]


def middle(shapes: Sequence[Shape], most: int = _MOST_ELEMENTS) -> list[tuple[int, ...]]:
    """Sizes between the smallest and the largest, equal for equal ranges, with at most about `most` elements in all."""
    sizes = smallest(shapes)
    for share in (2**-power for power in range(1, 63)):
        sizes = [tuple(_between(dim, share) for dim in shape.dims) for shape in shapes]
        if sum(math.prod(one) for one in sizes) <= most:
            break
    return sizes


def random_inputs(shapes: Sequence[Shape], sizes: Sequence[tuple[int, ...]], seed: int = 0) -> tuple[Tensor, ...]:
    """Random tensors of these sizes: normal for floating dtypes, 0 to 9 for integers, 0 to 255 for uint8."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(_random(shape.dtype, size, generator) for shape, size in zip(shapes, sizes, strict=True))


def stretched(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """Crop or repeat a tensor in each dimension to fit these sizes, which keeps its values typical."""
    for at, size in enumerate(sizes):
        if not tensor.shape[at]:
            tensor = tensor.new_zeros([*tensor.shape[:at], size, *tensor.shape[at + 1 :]])
        elif tensor.shape[at] != size:
            index = torch.arange(size, device=tensor.device) % tensor.shape[at]
            tensor = tensor.index_select(at, index)
    return tensor.contiguous()


def _fits(size: int, dim: Size) -> bool:
    return dim.min <= size <= (dim.max if dim.max is not None else size) if isinstance(dim, Dimension) else size == dim


def _between(dim: Size, share: float) -> int:
    if not isinstance(dim, Dimension):
        return dim
    span = (dim.max if dim.max is not None else dim.min + _BEYOND) - dim.min
    # At least one step, and at least 2 where the range allows it: many tools special-case the sizes 0 and 1.
    return dim.min + max(min(span, max(1, 2 - dim.min)), int(span * share))


def _random(dtype: torch.dtype, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        exact = dtype if dtype in {torch.float64, torch.complex64, torch.complex128} else torch.float32
        return torch.randn(size, dtype=exact, generator=generator).to(dtype)
    end = {torch.bool: 2, torch.uint8: 256}.get(dtype, _LARGEST_INTEGER)
    return torch.randint(end, size, generator=generator).to(dtype)


def written(dim: Size) -> str:
    """A dimension in the notation: `3`, `1..64`, `1..`."""
    if not isinstance(dim, Dimension):
        return str(dim)
    return f"{dim.min}..{'' if dim.max is None else dim.max}"


def _dtype(name: str, text: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    # An alias such as `float` is accepted, and written under the name of its target.
    if not isinstance(dtype, torch.dtype):
        msg = f"{text!r} names the dtype {name!r}, which PyTorch does not have: expected one such as float32 or int64"
        raise BundleError(msg)
    return dtype


def _dimension(part: str, text: str) -> Size:
    found = _DIMENSION.fullmatch(part)
    if found is None:
        raise _unreadable(text)
    least, most = int(found[1]), int(found[3]) if found[3] else None
    if max(least, most or 0) > LARGEST or (most is not None and most < least):
        msg = f"{part!r} in the shape {text!r} is not a range: expected the smallest size first, and none above 2^63"
        raise BundleError(msg)
    if not found[2] or least == most:
        return least
    return Dimension(least, most)


def _unreadable(text: str) -> BundleError:
    return BundleError(
        f"{text!r:.300} is not a shape: expected one such as float32[1..64,3,224,224], where 1..64 is a dynamic size, "
        "and 1.. is one without an upper limit"
    )
