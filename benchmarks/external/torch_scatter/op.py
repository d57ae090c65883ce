"""The operators of torch-scatter 2.1.2: reductions of elements that share an index, and their inverses.

`out`, if given, is the initial value of a reduction, or only memory for the result (in the CSR functions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

library = opwright.Library("torch_scatter", imports=["torch_scatter"])


def _at(index: Tensor, src: Tensor, dim: int) -> Tensor:
    """The index of each element of `src`: a 1-d index runs along `dim`, any other starts at the first dimension."""
    index = index.view(*[1] * dim, -1) if index.dim() == 1 else index
    return index.view(*index.shape, *[1] * (src.dim() - index.dim())).expand_as(src)


def _start(src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None, value: float = 0) -> Tensor:
    """The initial value of a reduction: `out`, or `value` for each of `dim_size` or the largest index + 1 segments."""
    shape = list(src.shape)
    shape[dim] = dim_size if dim_size is not None else int(index.max()) + 1 if index.numel() else 0
    return src.new_full(shape, value) if out is None else out


def _padded(x: Tensor, dim: int, before: int, after: int) -> Tensor:
    return pad(x, [0, 0] * (x.dim() - 1 - dim) + [before, after])


def _extreme(
    reduce: str, src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None
) -> tuple[Tensor, Tensor]:
    """The smallest or largest element of each segment and its first position; 0 and the end for empty segments."""
    start, index, end = _start(src, index, dim, out, dim_size), _at(index, src, dim), src.shape[dim]
    best = start.scatter_reduce(dim, index, src.detach(), reduce, include_self=out is not None).gather(dim, index)
    is_best = src.isnan() | (src == best) & (src != start.gather(dim, index) if out is not None else True)
    places = _at(torch.arange(end), src, dim).where(is_best, end)
    first = index.new_full(start.shape, end).scatter_reduce(dim, index, places, "amin")
    return _padded(src, dim, 0, 1).gather(dim, first).where(first < end, start), first


def _is_between(low: int, index: Tensor, high: int | None) -> bool:
    return bool((index >= low).all()) and (high is None or bool((index <= high).all()))


def _is_sorted(index: Tensor) -> bool:
    return index.dim() == 0 or bool((index.diff() >= 0).all())


# -- scatter: any order of the index ----------------------------------------------------------------------


@library.op
def scatter_sum(src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None) -> Tensor:
    """Adds up the elements that share an index."""
    index = _at(index, src, dim := range(src.dim())[dim])
    return _start(src, index, dim, out, dim_size).scatter_add(dim, index, src)


@library.op
def scatter_mean(src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None) -> Tensor:
    """Averages the elements that share an index; integers are rounded down."""
    total: Tensor = scatter_sum(src, index, dim, out, dim_size)
    count = torch.zeros_like(total).scatter_add(dim, _at(index, src, dim % src.dim()), torch.ones_like(src)).clamp(1)
    return total / count if src.is_floating_point() else total.div(count, rounding_mode="floor")


@library.op
def scatter_mul(src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None) -> Tensor:
    """Multiplies the elements that share an index."""
    index = _at(index, src, dim := range(src.dim())[dim])
    return _start(src, index, dim, out, dim_size, 1).scatter_reduce(dim, index, src, "prod")


@library.op
def scatter_min(
    src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None
) -> tuple[Tensor, Tensor]:
    """Finds the smallest of the elements that share an index, and its position."""
    index = _at(index, src, dim := range(src.dim())[dim])
    return _extreme("amin", src, index, dim, out, dim_size)


@library.op
def scatter_max(
    src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None
) -> tuple[Tensor, Tensor]:
    """Finds the largest of the elements that share an index, and its position."""
    index = _at(index, src, dim := range(src.dim())[dim])
    return _extreme("amax", src, index, dim, out, dim_size)


@scatter_sum.samples(dtypes=(torch.float64,))
@scatter_mean.samples(dtypes=(torch.float64,))
@scatter_mul.samples(dtypes=(torch.float64,))
@scatter_min.samples(dtypes=(torch.float64,))
@scatter_max.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    rows, columns, segments = make.size(5), make.size(7), 4
    yield make.randn(rows, columns), make.randint(0, segments, columns), 1, None, segments + 2
    yield make.randn(columns, rows), make.randint(0, segments, columns), 0, None, None
    yield make.randn(2, columns, 3), make.randint(0, segments, 2, columns), -2, None, segments


@scatter_sum.domain
@scatter_mean.domain
@scatter_mul.domain
@scatter_min.domain
@scatter_max.domain
def _(src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None) -> bool:
    """As documented, indices are inside the result. Also, `dim` exists, which is not checked (a fault)."""
    if dim not in range(-src.dim(), src.dim()):
        return False
    size = dim_size if out is None else out.shape[dim]
    return _is_between(0, index, None if size is None else size - 1)


# -- segment_coo: a sorted index --------------------------------------------------------------------------


@library.op
def segment_sum_coo(src: Tensor, index: Tensor, out: Tensor | None, dim_size: int | None) -> Tensor:
    """Adds up the elements of each segment."""
    dim = range(index.dim())[-1]
    return _start(src, index, dim, out, dim_size).scatter_add(dim, _at(index, src, 0), src)


@library.op
def segment_mean_coo(src: Tensor, index: Tensor, out: Tensor | None, dim_size: int | None) -> Tensor:
    """Averages the elements of each segment; integers are rounded toward 0."""
    total: Tensor = segment_sum_coo(src, index, out, dim_size)
    count = torch.zeros_like(total).scatter_add(index.dim() - 1, _at(index, src, 0), torch.ones_like(src)).clamp(1)
    return total / count if src.is_floating_point() else total.div(count, rounding_mode="trunc")


@library.op
def segment_min_coo(src: Tensor, index: Tensor, out: Tensor | None, dim_size: int | None) -> tuple[Tensor, Tensor]:
    """Finds the smallest element of each segment, and its position."""
    return _extreme("amin", src, index, range(index.dim())[-1], out, dim_size)


@library.op
def segment_max_coo(src: Tensor, index: Tensor, out: Tensor | None, dim_size: int | None) -> tuple[Tensor, Tensor]:
    """Finds the largest element of each segment, and its position."""
    return _extreme("amax", src, index, range(index.dim())[-1], out, dim_size)


@segment_sum_coo.samples(dtypes=(torch.float64,))
@segment_mean_coo.samples(dtypes=(torch.float64,))
@segment_min_coo.samples(dtypes=(torch.float64,))
@segment_max_coo.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    rows, columns, segments = make.size(5), make.size(7), 4
    yield make.randn(columns, rows), make.randint(1, segments, columns).sort()[0], None, segments + 2
    yield make.randn(2, columns, 3), make.randint(0, segments, 2, columns).sort()[0], None, None
    yield make.randn(rows, columns, 3), make.randint(0, segments, 1, columns).sort()[0], None, segments


@segment_sum_coo.domain
@segment_mean_coo.domain
@segment_min_coo.domain
@segment_max_coo.domain
def _(src: Tensor, index: Tensor, out: Tensor | None, dim_size: int | None) -> bool:
    """As documented, the index is sorted and inside the result."""
    size = dim_size if out is None else out.shape[index.dim() - 1]
    return _is_sorted(index) and _is_between(0, index, None if size is None else size - 1)


@library.op
def gather_coo(src: Tensor, index: Tensor, out: Tensor | None) -> Tensor:
    """Copies the value of each segment to its elements."""
    dim = range(index.dim())[-1]
    shape = [*index.shape, *src.shape[dim + 1 :]]
    result = src.gather(dim, index.view(*index.shape, *[1] * (src.dim() - index.dim())).expand(shape))
    return result if out is None else result.view(out.shape).to(out.dtype)


@gather_coo.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    rows, columns, segments = make.size(5), make.size(7), 4
    yield make.randn(segments, rows), make.randint(0, segments, columns).sort()[0], None
    yield make.randn(2, segments, 3), make.randint(0, segments, 2, columns).sort()[0], None


@gather_coo.domain
def _(src: Tensor, index: Tensor, out: Tensor | None) -> bool:
    """As documented, the index is sorted and inside `src`."""
    return _is_sorted(index) and _is_between(0, index, src.shape[index.dim() - 1] - 1)


# -- segment_csr: the ends of the segments ----------------------------------------------------------------


def _bins(src: Tensor, indptr: Tensor) -> Tensor:
    """The segment number of each position, from 1; 0 before the first segment, the largest number after the last."""
    dim = range(indptr.dim())[-1]
    places = torch.arange(src.shape[dim]).expand(*src.shape[:dim], -1).contiguous()
    return torch.searchsorted(indptr.expand(*src.shape[:dim], -1).contiguous(), places, right=True)


def _inner(result: Tensor, indptr: Tensor, out: Tensor | None) -> Tensor:
    result = result.narrow(indptr.dim() - 1, 1, max(indptr.shape[-1] - 1, 0))
    return result if out is None else result.view(out.shape).to(out.dtype)


@library.op
def segment_sum_csr(src: Tensor, indptr: Tensor, out: Tensor | None) -> Tensor:
    """Adds up the elements of each segment."""
    return _inner(segment_sum_coo(src, _bins(src, indptr), None, indptr.shape[-1] + 1), indptr, out)


@library.op
def segment_mean_csr(src: Tensor, indptr: Tensor, out: Tensor | None) -> Tensor:
    """Averages the elements of each segment; integers are rounded toward 0."""
    return _inner(segment_mean_coo(src, _bins(src, indptr), None, indptr.shape[-1] + 1), indptr, out)


@library.op
def segment_min_csr(src: Tensor, indptr: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """Finds the smallest element of each segment, and its position."""
    smallest, places = segment_min_coo(src, _bins(src, indptr), None, indptr.shape[-1] + 1)
    return _inner(smallest, indptr, out), _inner(places, indptr, None)


@library.op
def segment_max_csr(src: Tensor, indptr: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """Finds the largest element of each segment, and its position."""
    largest, places = segment_max_coo(src, _bins(src, indptr), None, indptr.shape[-1] + 1)
    return _inner(largest, indptr, out), _inner(places, indptr, None)


@segment_sum_csr.samples(dtypes=(torch.float64,))
@segment_mean_csr.samples(dtypes=(torch.float64,))
@segment_min_csr.samples(dtypes=(torch.float64,))
@segment_max_csr.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    rows, columns, segments = make.size(5), make.size(7), 4
    yield make.randn(columns, rows), make.randint(0, columns + 1, segments + 1).sort()[0], None
    yield make.randn(2, columns, 3), make.randint(0, columns + 1, 2, segments + 1).sort()[0], None
    yield make.randn(rows, columns, 3), make.randint(0, columns + 1, 1, segments + 1).sort()[0], None


@segment_sum_csr.domain
@segment_mean_csr.domain
@segment_min_csr.domain
@segment_max_csr.domain
def _(src: Tensor, indptr: Tensor, out: Tensor | None) -> bool:
    """As documented, the ends are sorted and inside `src`."""
    return _is_sorted(indptr) and _is_between(0, indptr, src.shape[indptr.dim() - 1])


@library.op
def gather_csr(src: Tensor, indptr: Tensor, out: Tensor | None) -> Tensor:
    """Copies the value of each segment to its elements; 0 outside all segments."""
    dim, shape = range(indptr.dim())[-1], list(src.shape)
    shape[dim] = int(indptr.flatten()[-1]) if src.numel() else 0
    start = src.new_zeros(shape) if out is None else out
    if src.shape[dim] not in (0, indptr.shape[-1] - 1):
        raise ValueError("src must have as many segments as indptr")
    bins = _at(_bins(start, indptr), start, 0)
    return torch.where((bins > 0) & (bins < indptr.shape[-1]), _padded(src, dim, 1, 1).gather(dim, bins), start)


@gather_csr.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    rows, columns, segments = make.size(5), make.size(7), 4
    ends = pad(make.randint(0, columns + 1, segments - 1).sort()[0], [1, 0])
    yield make.randn(segments, rows), torch.cat([ends, torch.tensor([columns])]), None
    yield make.randn(2, segments, 3), torch.cat([ends, torch.tensor([columns])]).expand(2, -1), None


@gather_csr.domain
def _(src: Tensor, indptr: Tensor, out: Tensor | None) -> bool:
    """As documented, the ends are sorted and inside the result."""
    size = int(indptr.flatten()[-1]) if out is None else out.shape[indptr.dim() - 1]
    return _is_sorted(indptr) and _is_between(0, indptr, size)
