"""Kernels of torch-scatter 2.1.2, those of csrc/cpu/segment_csr_cpu.cpp, as operators with the checks they lack.

The minimum and the maximum lose NaN, infinities and the limits of a dtype, and `gather` does not write elements outside
all segments: the domains exclude both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

library = opwright.Library(
    "segments", sources=["kernels.cpp", "csrc/cpu/segment_csr_cpu.cpp"], include_dirs=["csrc/cpu"]
)


def _by_segment(src: Tensor, indptr: Tensor, out: Tensor | None, outside: float) -> tuple[Tensor, Tensor]:
    """The elements of each segment, (..., S, E, ...), with `outside` for others, and a mask of those inside."""
    dim = indptr.dim() - 1
    if dim < 0 or dim >= src.dim() or indptr.shape[-1] < 2 or indptr.dtype != torch.int64:
        raise ValueError("indptr must hold the ends of one segment or more, in int64")
    places = torch.arange(src.shape[dim])
    inside = (indptr[..., :-1, None] <= places) & (places < indptr[..., 1:, None])
    inside = inside.view(*inside.shape, *[1] * (src.dim() - dim - 1))
    elements = torch.where(inside, src.unsqueeze(dim), torch.tensor(outside).to(src.dtype))
    expected = (*src.shape[:dim], indptr.shape[-1] - 1, *src.shape[dim + 1 :])
    if out is not None and (out.shape != expected or out.dtype != src.dtype):
        raise ValueError("out must have the shape of the result, and the dtype of src")
    return elements, inside.expand_as(elements)


@library.op(differentiable=())
def segment_sum(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """The sum of each segment src[indptr[i]:indptr[i + 1]]."""
    total: Tensor = _by_segment(src, indptr, out, 0)[0].sum(indptr.dim(), dtype=src.dtype)
    return total


@library.op(differentiable=())
def segment_mean(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """The mean of each segment, rounded toward 0 for integers; 0 for an empty one."""
    count = _by_segment(src, indptr, out, 0)[1].sum(indptr.dim()).clamp(min=1)
    total: Tensor = segment_sum(src, indptr, out)
    return (total / count if src.is_floating_point() else total.div(count, rounding_mode="trunc")).to(src.dtype)


def _extreme(src: Tensor, indptr: Tensor, out: Tensor | None, worst: float, reduce: Any) -> tuple[Tensor, Tensor]:
    elements, inside = _by_segment(src, indptr, out, worst)
    dim, size = indptr.dim(), src.shape[indptr.dim() - 1]
    if size == 0:
        empty = elements.sum(dim, dtype=src.dtype)
        return empty, torch.zeros_like(empty, dtype=torch.int64)
    best = reduce(elements, dim, keepdim=True)
    places = torch.arange(size).view(-1, *[1] * (src.dim() - dim))
    first = torch.where(inside & (elements == best), places, size).amin(dim)
    return torch.where(first < size, best.squeeze(dim), torch.zeros_like(first, dtype=src.dtype)), first


@library.op(differentiable=())
def segment_min(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The smallest element of each segment and its first position; 0 and the length of src for an empty one."""
    info = torch.finfo(src.dtype) if src.is_floating_point() else torch.iinfo(src.dtype)
    return _extreme(src, indptr, out, info.max, torch.amin)


@library.op(differentiable=())
def segment_max(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The largest element of each segment and its first position; 0 and the length of src for an empty one."""
    info = torch.finfo(src.dtype) if src.is_floating_point() else torch.iinfo(src.dtype)
    return _extreme(src, indptr, out, info.min, torch.amax)


@library.op(differentiable=())
def gather(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """Each segment's element of src, repeated for the length of the segment."""
    dim = indptr.dim() - 1
    if dim < 0 or dim >= src.dim() or indptr.shape[-1] < 2 or indptr.dtype != torch.int64:
        raise ValueError("indptr must hold the ends of one segment or more, in int64")
    size = int(indptr.flatten()[-1]) if src.numel() else 0
    expected = (*src.shape[:dim], size, *src.shape[dim + 1 :])
    if src.shape[dim] not in (0, indptr.shape[-1] - 1):
        raise ValueError("src must have an element for each segment")
    if out is not None and (out.shape != expected or out.dtype != src.dtype):
        raise ValueError("out must have the shape of the result, and the dtype of src")
    segment = (indptr[..., 1:, None] <= torch.arange(size)).sum(dim)
    segment = segment.view(*segment.shape, *[1] * (src.dim() - dim - 1)).expand(expected)
    return src.gather(dim, segment)


@gather.fake
def _(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    if out is not None:
        return torch.empty_like(out, memory_format=torch.contiguous_format)
    dim = indptr.dim() - 1
    return src.new_empty(*src.shape[:dim], torch.library.get_ctx().new_dynamic_size(), *src.shape[dim + 1 :])


@segment_sum.samples(dtypes=(torch.float64, torch.float16, torch.int32))
@segment_mean.samples(dtypes=(torch.float64, torch.float16, torch.int32))
@segment_min.samples(dtypes=(torch.float64, torch.float16, torch.int32))
@segment_max.samples(dtypes=(torch.float64, torch.float16, torch.int32))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    rows, columns, segments = make.size(5), make.size(7), make.size(4)
    ends = make.randint(0, columns + 1, 2, segments + 1).sort()[0]
    yield make.randn(columns, rows), ends[0], None
    yield make.randn(columns), ends[1], make.randn(segments)
    yield make.randn(2, columns, 3), ends, make.randn(2, segments, 3)
    yield make.randn(rows, columns, 3), ends[:1], None


@gather.samples(dtypes=(torch.float64, torch.float16, torch.int32))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    rows, columns, segments = make.size(5), make.size(7), make.size(4)
    ends = make.randint(0, columns + 1, 2, segments + 1).sort()[0]
    ends[:, 0], ends[:, -1] = 0, columns
    yield make.randn(segments, rows), ends[0], None
    yield make.randn(segments), ends[1], make.randn(columns)
    yield make.randn(2, segments, 3), ends, make.randn(2, columns, 3)
    yield make.randn(rows, segments, 3), ends[:1], None


@segment_sum.errors
@segment_mean.errors
@segment_min.errors
@segment_max.errors
@gather.errors
def _(make: opwright.Make) -> Iterator[tuple[str, opwright.Sample]]:
    """The message of a check that a later error would otherwise replace."""
    yield "Input mismatch", make.call(make.randn(4), torch.tensor([[0, 1, 2, 3, 4]]))


def _are_ends(src: Tensor, indptr: Tensor) -> bool:
    """Whether the numbers in `indptr` delimit segments of `src`; true if the kernel must reject its dimensions."""
    if not 0 < indptr.dim() <= src.dim():
        return True
    return _ascend(indptr) and bool((indptr <= src.shape[indptr.dim() - 1]).all())


def _ascend(indptr: Tensor) -> bool:
    return bool((indptr >= 0).all() and (indptr.diff() >= 0).all())


@segment_sum.domain
@segment_mean.domain
def _(src: Tensor, indptr: Tensor, out: Tensor | None) -> bool:
    return _are_ends(src, indptr)


@segment_min.domain
@segment_max.domain
def _(src: Tensor, indptr: Tensor, out: Tensor | None) -> bool:
    info = torch.finfo(src.dtype) if src.is_floating_point() else torch.iinfo(src.dtype)
    return _are_ends(src, indptr) and bool(((src > info.min) & (src < info.max)).all())


@gather.domain
def _(src: Tensor, indptr: Tensor, out: Tensor | None) -> bool:
    if indptr.dim() == 0 or indptr.shape[-1] < 2:
        return True  # the kernel must reject it
    ends = indptr[..., -1:]
    return _ascend(indptr) and bool((indptr[..., 0] == 0).all() and (ends == ends.flatten()[:1]).all())
