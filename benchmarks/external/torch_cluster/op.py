"""The operators of torch-cluster 1.6.3: neighbors, samples and clusters of points and of graphs.

Three of them draw random numbers. Their domains include only graphs for which there is nothing to choose.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

library = opwright.Library("torch_cluster", imports=["torch_cluster"])


def _distances(x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None) -> Tensor:
    """The squared distance between each x and each y; infinite between points of different batches."""
    distance = (y[:, None] - x).square().sum(2)
    if ptr_x is None:
        return distance
    if ptr_y is None or ptr_x.dim() != 1 or ptr_y.dim() != 1:
        raise ValueError("ptr_x and ptr_y must be given together, with one dimension")
    batch_x, batch_y = (torch.bucketize(torch.arange(n), p, right=True) for n, p in ((len(x), ptr_x), (len(y), ptr_y)))
    return distance.where(batch_y[:, None] == batch_x, math.inf)


def _is_ptr(ptr: Tensor | None, x: Tensor) -> bool:
    """Whether a batch vector is one that the package computes: sorted, from 0 to the number of points."""
    return ptr is None or bool(ptr[0] == 0 and ptr[-1] == len(x) and (ptr.diff() >= 0).all())


def _batches(n: int) -> Tensor:
    return torch.tensor([0, n // 2, n])


@library.op
def knn(
    x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None, k: int, cosine: bool, num_workers: int
) -> Tensor:
    """Finds the k points of x that are nearest to each y of the same batch, nearest first, as (y, x)."""
    if x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[1] or k < 1:
        raise ValueError("x and y must be points of the same dimension, and k positive")
    order = _distances(x, y, ptr_x, ptr_y).sort(stable=True)
    rows = torch.arange(len(y))[:, None].expand_as(order[1])
    is_near = (torch.arange(len(x)) < k) & (order[0] < math.inf)
    return torch.stack([rows[is_near], order[1][is_near]])


@knn.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n, m, size = make.size(15), make.size(7), make.size(3)
    yield make.randn(n, size), make.randn(m, size), None, None, 3, False, 1
    yield make.randn(n, size), make.randn(m, size), _batches(n), _batches(m), 2, False, 1


@knn.domain
def _(x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None, k: int, cosine: bool, num_workers: int) -> bool:
    """No two points are equally near: the order of such points is not documented."""
    distances = (y[:, None] - x).square().sum(2).sort()[0]
    return _is_ptr(ptr_x, x) and _is_ptr(ptr_y, y) and not bool((distances.diff() == 0).any())


@library.op
def radius(
    x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None, r: float, max_num_neighbors: int, num_workers: int
) -> Tensor:
    """Finds at most a given number of points of x that are nearer than r to each y of the same batch, as (y, x)."""
    if x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[1]:
        raise ValueError("x and y must be points of the same dimension")
    return (_distances(x, y, ptr_x, ptr_y) < r * r).nonzero()[: None if max_num_neighbors else 0].t().contiguous()


@radius.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n, size = make.size(15), make.size(3)
    x, y = (torch.arange(n)[:, None] + 0.1 * make.rand(n, size) for _ in range(2))
    yield x, y, None, None, 0.3, 32, 1
    yield x, y.flip(0), _batches(n), _batches(n), 0.3, 4, 1


@radius.domain
def _(
    x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None, r: float, max_num_neighbors: int, num_workers: int
) -> bool:
    """No y has two neighbors: neither their order nor the choice among too many is documented."""
    neighbors = ((y[:, None] - x).square().sum(2) < r * r).sum(1)
    return _is_ptr(ptr_x, x) and _is_ptr(ptr_y, y) and bool((neighbors < 2).all())


@library.op
def fps(src: Tensor, ptr: Tensor, ratio: Tensor, random_start: bool) -> Tensor:
    """Samples points of each batch, starting with its first: repeatedly the one that is furthest from those sampled."""
    counts = (ptr.diff().float() * ratio).ceil().long().tolist()
    chosen = []
    for begin, end, count in zip(ptr[:-1].tolist(), ptr[1:].tolist(), counts, strict=True):
        points, picked = src.flatten(1)[begin:end], [0][:count]
        nearest = (points - points[:1]).square().sum(1)
        while len(picked) < count:
            picked.append(int(nearest.argmax()))
            nearest = nearest.minimum((points - points[picked[-1]]).square().sum(1))
        chosen += [begin + at for at in picked]
    return torch.tensor(chosen, dtype=torch.int64)


@fps.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n = make.size(15)
    yield make.randn(n, 3), torch.tensor([0, n]), torch.tensor(0.5), False
    yield make.randn(n, 3), _batches(n), torch.tensor([0.5, 0.3]), False


@fps.domain
def _(src: Tensor, ptr: Tensor, ratio: Tensor, random_start: bool) -> bool:
    """Nothing is random, and the batches are ones that the package computes."""
    return not random_start and _is_ptr(ptr, src)


@library.op
def grid(pos: Tensor, size: Tensor, start: Tensor | None, end: Tensor | None) -> Tensor:
    """Numbers the grid cells from `start` to `end` that contain the points."""
    pos = pos.flatten(1)
    start = pos.amin(0) if start is None else start
    end = pos.amax(0) if end is None else end
    if not size.shape == start.shape == end.shape == pos.shape[1:]:
        raise ValueError("size, start and end must have an element for each coordinate")
    counts = ((end - start) / size).long() + 1
    steps = torch.cat([torch.ones(1, dtype=torch.int64), counts.cumprod(0)[:-1]])
    return (((pos - start) / size).long() * steps).sum(1)


@grid.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n, size = make.size(15), make.size(3)
    yield make.randn(n, size), make.rand(size) + 0.1, None, None
    yield make.rand(n, size), make.rand(size) + 0.1, make.rand(size) - 1.5, make.rand(size) + 1.5


@library.op
def nearest(x: Tensor, y: Tensor, ptr_x: Tensor, ptr_y: Tensor) -> Tensor:
    """Finds the point of y that is nearest to each x of the same batch."""
    return _distances(y, x, ptr_y, ptr_x).argmin(1)


@nearest.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n, m, size = make.size(15), make.size(7), make.size(3)
    yield make.randn(n, size), make.randn(m, size), _batches(n), _batches(m)


# -- graphs: the neighbors of node i are col[rowptr[i]:rowptr[i + 1]] -------------------------------------


def _one_neighbor_each(rowptr: Tensor, col: Tensor) -> bool:
    """Whether it is a graph in which no node has two neighbors, of which one would be drawn."""
    degrees = rowptr.diff()
    is_graph = _is_ptr(rowptr, col) and bool((col >= 0).all() and (col < len(degrees)).all())
    return is_graph and bool((degrees < 2).all())


def _neighbors(rowptr: Tensor, col: Tensor) -> Tensor:
    """The neighbor of each node, itself if it has none."""
    if col.dim() != 1:
        raise ValueError("col must have one dimension")
    has_one = rowptr.diff() == 1
    return torch.arange(len(has_one)).masked_scatter(has_one, col)


@library.op
def graclus(rowptr: Tensor, col: Tensor, weight: Tensor | None) -> Tensor:
    """Merges each node with the neighbor of largest (nonnegative) weight; names both by the smaller."""
    if weight is not None and weight.shape != col.shape:
        raise ValueError("weight must have the shape of col")
    if weight is not None:
        rowptr, col = pad((weight >= 0).cumsum(0), [1, 0])[rowptr], col[weight >= 0]
    nodes = torch.randperm(len(rowptr) - 1)  # visited in a random order
    return torch.empty_like(nodes).scatter(0, nodes, _neighbors(rowptr, col)[nodes].minimum(nodes))


@graclus.samples
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n = 2 * make.size(8)
    col = torch.arange(n).roll(n // 2)  # node i, and node i + n / 2
    yield torch.arange(n + 1), col, None
    yield torch.arange(n + 1), col, make.rand(n)


@graclus.domain
def _(rowptr: Tensor, col: Tensor, weight: Tensor | None) -> bool:
    """No node has two neighbors, and every node is its neighbor's neighbor: then the order of nodes does not matter."""
    neighbors = _neighbors(rowptr, col)
    is_mutual = torch.equal(neighbors[neighbors], torch.arange(len(neighbors)))
    is_one_sided = weight is not None and not torch.equal(weight >= 0, (weight >= 0)[neighbors])
    return _one_neighbor_each(rowptr, col) and is_mutual and not is_one_sided


@library.op
def random_walk(
    rowptr: Tensor, col: Tensor, start: Tensor, walk_length: int, p: float, q: float
) -> tuple[Tensor, Tensor]:
    """Walks along random edges; returns the nodes and the edges of each walk, -1 for a missing edge."""
    degrees, nodes, edges = rowptr.diff(), [start], []
    for _ in range(walk_length):
        degree = degrees[nodes[-1]]
        edge = rowptr[nodes[-1]] + (torch.rand(len(start)) * degree).long()
        edges.append(edge.where(degree > 0, -1))
        nodes.append(pad(col, [0, 1])[edge].where(degree > 0, nodes[-1]))
    return torch.stack(nodes, 1), torch.stack(edges, 1) if edges else start.new_empty(len(start), 0)


@random_walk.samples
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n, length = make.size(15), make.size(6)
    rowptr = torch.arange(n + 1).clamp(max=max(n - 1, 0))  # the last node has no neighbor
    yield rowptr, make.randint(0, max(n, 1), max(n - 1, 0)), make.randint(0, max(n, 1), 9), length, 1.0, 1.0
    yield rowptr, make.randint(0, max(n, 1), max(n - 1, 0)), make.randint(0, max(n, 1), 9), length, 0.5, 2.0


@random_walk.domain
def _(rowptr: Tensor, col: Tensor, start: Tensor, walk_length: int, p: float, q: float) -> bool:
    """Nothing is random: no node has two neighbors."""
    is_node = bool((start >= 0).all() and (start < len(rowptr) - 1).all())
    return _one_neighbor_each(rowptr, col) and is_node


@library.op
def neighbor_sampler(start: Tensor, rowptr: Tensor, count: int, factor: float) -> Tensor:
    """Samples random edges of nodes: `count` per node, or if that is 0, `factor` times their number."""
    sampled = [start.new_empty(0)]
    for first, degree in zip(rowptr[start].tolist(), rowptr.diff()[start].tolist(), strict=True):
        size = count if count > 0 else max(math.ceil(factor * degree), 0)
        sampled.append(first + torch.randperm(degree)[:size])
    return torch.cat(sampled)


@neighbor_sampler.samples
def _(make: opwright.Make) -> Iterator[tuple[Any, ...]]:
    n, m = make.size(15), make.size(9)
    rowptr = pad(make.randint(0, 2, n).cumsum(0), [1, 0])
    yield make.randint(0, n, m), rowptr, 2, 0.0
    yield make.randint(0, n, m), rowptr, 0, 0.5


@neighbor_sampler.domain
def _(start: Tensor, rowptr: Tensor, count: int, factor: float) -> bool:
    """Nothing is random: no node has two edges."""
    degrees = rowptr.diff()
    return bool((start >= 0).all() and (start < len(degrees)).all() and (degrees >= 0).all() and (degrees < 2).all())
