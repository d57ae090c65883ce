"""Twenty operators of PyTorch itself, each described with other operators."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import opwright
from opwright import Make

library = opwright.Library("aten", imports=["torch"])


def pair(values: list[int]) -> tuple[int, ...]:
    """One number for both directions, or one for each."""
    return tuple(values * 2 if len(values) == 1 else values)


@library.op(vmap=True)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add a multiple of a quotient."""
    return self + value * (tensor1 / tensor2)


@addcdiv.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.call(make.randn(5, 7), make.randn(5, 7), make.rand(5, 7) + 0.5, value=0.5)
    yield make.randn(3, 1), make.randn(4), make.rand(3, 4) + 0.5


@library.op(name="lerp.Scalar", vmap=True)
def lerp(self: Tensor, end: Tensor, weight: float) -> Tensor:
    """Interpolate linearly, starting from the nearer end."""
    return self + weight * (end - self) if abs(weight) < 0.5 else end - (1 - weight) * (end - self)


@lerp.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.randn(5, 7), 0.3
    yield make.randn(3, 1), make.randn(4), 0.75


@library.op(name="clamp.Tensor", vmap=True)
def clamp(self: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Limit each number; if the limits cross, the upper one wins."""
    assert min is not None or max is not None
    if min is not None:
        self = torch.where((self < min) | min.isnan(), min, self)
    return self if max is None else torch.where((self > max) | max.isnan(), max, self)


@clamp.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.randn(5, 7) - 1, make.randn(5, 7) + 1
    yield make.randn(5, 7), None, make.randn(7)


@library.op(vmap=True)
def logaddexp(self: Tensor, other: Tensor) -> Tensor:
    """The logarithm of a sum of exponentials."""
    return torch.stack(torch.broadcast_tensors(self, other)).logsumexp(0)


@logaddexp.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.randn(5, 7)
    yield make.randn(3, 1), 50 * make.randn(4)


@library.op(vmap=True)
def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """A smooth ReLU, linear above a threshold."""
    x = self * beta
    return torch.where(x > threshold, self, x.masked_fill(x > threshold, 0).exp().log1p() / beta)


@softplus.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield 5 * make.randn(5, 7), 2.0, 3.0
    yield (make.randn(33),)


@library.op
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask is true, in order."""
    numbers, chosen = torch.broadcast_tensors(self, mask)
    selected: Tensor = numbers[chosen]
    return selected


@masked_select.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.rand(5, 7) > 0.5
    yield make.randn(3, 1), make.rand(4) > 0.5


@library.op(vmap=True)
def logsumexp(self: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    """The logarithm of a sum of exponentials, along dimensions."""
    largest = self.detach().amax(dim, True) if self.numel() else self.sum(dim, True)
    shift = largest.where(largest.isfinite(), 0)
    return (self - shift).exp().sum(dim, keepdim).log() + shift.sum(dim, keepdim)


@logsumexp.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7, 3), [0, 2]
    yield make.randn(5, 7), [-1], True


@library.op(name="var_mean.correction", vmap=True)
def var_mean(
    self: Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    mean = self.mean(dim, keepdim=True)
    distance = self - mean
    squares = (distance * distance.conj()).real.sum(dim, keepdim=keepdim)
    count = self.numel() / max(mean.numel(), 1) - (1 if correction is None else correction)
    return squares / max(count, 0), self.mean(dim, keepdim=keepdim)


@var_mean.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.call(make.randn(5, 7, 3), [0, 2], correction=0.5, keepdim=True)
    yield (make.randn(5, 7),)


@library.op(name="count_nonzero.dim_IntList", vmap=True)
def count_nonzero(self: Tensor, dim: list[int]) -> Tensor:
    """The number of nonzero elements along dimensions."""
    return (self != 0).sum(dim)


@count_nonzero.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7, 3).round(), [0, -1]
    yield make.randint(0, 3, 5, 7), [1]


@library.op(vmap=True)
def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The minimum and the maximum."""
    dims = () if dim is None else (dim,)
    return self.amin(dims, keepdim), self.amax(dims, keepdim)


@aminmax.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.call(make.randn(5, 7), dim=1, keepdim=True)
    yield (make.randn(5, 7, 3),)


@library.op(vmap=True)
def native_layer_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise the last dimensions; also return their mean and inverse standard deviation, without gradients."""
    assert normalized_shape
    assert list(input.shape[-len(normalized_shape) :]) == normalized_shape
    assert all(part is None or list(part.shape) == normalized_shape for part in (weight, bias))
    dims = list(range(-len(normalized_shape), 0))
    mean = input.mean(dims, keepdim=True)
    rstd = ((input - mean).square().mean(dims, keepdim=True) + eps).rsqrt()
    scaled = (input - mean) * rstd * (1 if weight is None else weight)
    return scaled + (0 if bias is None else bias), mean.detach(), rstd.detach()


@native_layer_norm.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    columns = make.size(7)
    yield make.randn(5, columns), [columns], make.randn(columns), make.randn(columns), 1e-5
    yield make.randn(2, 3, columns), [3, columns], None, None, 1e-3


@library.op
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Correlate images with filters."""
    window, steps, margin, gaps = weight.shape[2:], pair(stride), pair(padding), pair(dilation)
    sizes = zip(input.shape[-2:], window, steps, margin, gaps, strict=True)
    size = [(n + 2 * pad - gap * (taps - 1) - 1) // step + 1 for n, taps, step, pad, gap in sizes]
    patches = functional.unfold(input, window, gaps, margin, steps).unflatten(-2, (groups, -1))
    made: Tensor = weight.unflatten(0, (groups, -1)).flatten(2) @ patches
    made = made.flatten(-3, -2).unflatten(-1, size)
    return made if bias is None else made + bias[:, None, None]


@conv2d.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(2, 3, 8, 9), make.randn(4, 3, 3, 2), make.randn(4), [2, 1], [1, 0], [1, 2]
    yield make.randn(4, 7, 7), make.randn(6, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], 2


@library.op(vmap=True)
def avg_pool2d(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int]) -> Tensor:
    """The mean of each window."""
    (high, wide), (down, right), (above, left) = pair(kernel_size), pair(stride or kernel_size), pair(padding)
    windows = functional.pad(self, (left, left, above, above)).unfold(-2, high, down).unfold(-2, wide, right)
    rounding = None if self.is_floating_point() else "trunc"
    return torch.div(windows.sum((-2, -1), dtype=self.dtype), high * wide, rounding_mode=rounding)


@avg_pool2d.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(2, 3, 8, 9), [3, 2], [2, 1], [1, 0]
    yield make.randn(3, 6, 6), [2, 2], [], [0, 0]


@library.op(vmap=True)
def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    """The distance, squared if it is small."""
    assert beta >= 0
    distance = (self - target).abs()
    loss = torch.where(distance < beta, distance.square() / (2 * beta or 1), distance - beta / 2)
    return (loss, loss.mean(), loss.sum())[reduction]


@smooth_l1_loss.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.randn(5, 7), 0, 0.5
    yield make.randn(33), make.randn(33)


@library.op(vmap=True, differentiable=["self", "target"])
def binary_cross_entropy_with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """The cross entropy between logits and probabilities."""
    positive = target * functional.logsigmoid(self) * (1 if pos_weight is None else pos_weight)
    loss = -(positive + (1 - target) * functional.logsigmoid(-self)) * (1 if weight is None else weight)
    return (loss, loss.mean(), loss.sum())[reduction]


@binary_cross_entropy_with_logits.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.rand(5, 7), make.rand(7), make.rand(7), 0
    yield make.randn(33), make.rand(33)


@binary_cross_entropy_with_logits.domain
def _(self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int) -> bool:
    return reduction in (0, 1, 2) and not ((target < 0) | (target > 1)).any()


@library.op(vmap=True)
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Add slices at indices, which may repeat."""
    slices = alpha * source.movedim(dim, 0)
    return self.movedim(dim, 0).index_put((index,), slices, accumulate=True).movedim(0, dim)


@index_add.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    rows = make.size(6)
    yield make.call(make.randn(4, 5), 1, make.randint(0, 5, rows), make.randn(4, rows), alpha=0.5)
    yield make.randn(5, 3), 0, make.randint(0, 5, rows), make.randn(rows, 3)


@library.op(name="bucketize.Tensor", vmap=True)
def bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of sorted boundaries below each number; with `right`, the number of those not above it."""
    numbers = self.unsqueeze(-1)
    below = ~(boundaries > numbers) if right else ~(boundaries >= numbers)
    return below.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


@bucketize.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.randn(9).sort().values
    yield make.call(make.randint(0, 9, 33), make.randint(0, 9, 4).sort().values, out_int32=True, right=True)


@bucketize.domain
def _(self: Tensor, boundaries: Tensor, out_int32: bool, right: bool) -> bool:
    return bool((boundaries[1:] >= boundaries[:-1]).all())


@library.op(vmap=True)
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Add matrix products to a multiple of a tensor; if the factor is 0, the tensor's values do not matter."""
    product = alpha * torch.bmm(batch1, batch2)
    return product + (beta * self if beta else torch.zeros_like(self)).expand_as(product)


@baddbmm.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    rows, inner, columns = make.size(5), make.size(4), make.size(6)
    yield make.randn(2, rows, columns), make.randn(2, rows, inner), make.randn(2, inner, columns)
    yield make.call(make.randn(columns), make.randn(2, rows, inner), make.randn(2, inner, columns), beta=0.5, alpha=2.0)


@baddbmm.domain
def _(self: Tensor, batch1: Tensor, batch2: Tensor, beta: float, alpha: float) -> bool:
    return self.is_floating_point() or self.is_complex() or (isinstance(beta, int) and isinstance(alpha, int))


@library.op(vmap=True)
def linalg_multi_dot(tensors: list[Tensor]) -> Tensor:
    """The product of matrices; the first and the last may be vectors."""
    return reduce(torch.matmul, tensors)


@linalg_multi_dot.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    a, b, c, d = make.size(5), make.size(4), make.size(6), make.size(3)
    yield ([make.randn(a, b), make.randn(b, c), make.randn(c, d)],)
    yield ([make.randn(a), make.randn(a, b), make.randn(b, c), make.randn(c)],)


@linalg_multi_dot.domain
def _(tensors: list[Tensor]) -> bool:
    return all(bool(one.isfinite().all()) for one in tensors)


@library.op(name="masked_fill_.Scalar", mutates=["self"], vmap=True)
def masked_fill_(self: Tensor, mask: Tensor, value: float) -> None:
    """Write a value where a mask is true."""
    self.copy_(torch.where(mask, value, self))


@masked_fill_.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    yield make.randn(5, 7), make.rand(5, 7) > 0.5, 2.5
    yield make.randn(5, 7), make.rand(7) > 0.5, -1.0
