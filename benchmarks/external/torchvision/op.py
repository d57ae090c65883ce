"""Four operators of torchvision, as it registers them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import opwright
from opwright import Make

library = opwright.Library("torchvision", imports=["torchvision"])


def boxes(make: Make, count: int, extent: float) -> Tensor:
    """Corners (x1, y1, x2, y2) of boxes with positive sizes, which start between 0 and `extent`."""
    corner = make.rand(count, 2) * extent
    return torch.cat([corner, corner + make.rand(count, 2) * extent + 0.5], 1)


def are_boxes(corners: Tensor) -> bool:
    """Whether 0 <= x1 < x2 and 0 <= y1 < y2, as torchvision's documentation requires."""
    low, high = corners[:, :2], corners[:, 2:]
    return bool(((low >= 0) & (low < high) & high.isfinite()).all())


def are_regions(input: Tensor, rois: Tensor) -> bool:
    """Whether each region is the index of an image and a box."""
    image = rois[:, 0]
    return bool(((image >= 0) & (image < input.shape[0])).all()) and are_boxes(rois[:, 1:])


@library.op
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the boxes that do not overlap a better box too much, best first."""
    assert dets.shape == (len(scores), 4)
    low, high = torch.maximum(dets[:, None, :2], dets[:, :2]), torch.minimum(dets[:, None, 2:], dets[:, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area = (dets[:, 2:] - dets[:, :2]).prod(-1)
    overlaps = shared / (area[:, None] + area - shared) > iou_threshold
    kept: list[int] = []
    for box in scores.argsort(descending=True, stable=True).tolist():
        if not overlaps[box, kept].any():
            kept.append(box)
    return torch.tensor(kept, dtype=torch.int64)


@nms.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    count = make.size(20)
    yield boxes(make, count, 10), make.rand(count), 0.3


@nms.domain
def _(dets: Tensor, scores: Tensor, iou_threshold: float) -> bool:
    return are_boxes(dets)


def bilinear(start: Tensor, end: Tensor, bins: int, ratio: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """For the samples in parts of an interval: the two nearest pixels, their weights, and which samples are inside."""
    steps = ratio if ratio > 0 else int(((end - start) / max(bins, 1)).ceil())
    part = (torch.arange(bins * steps).to(start) + 0.5).view(bins, steps) / max(bins * steps, 1)
    at = start + (end - start) * part
    low, far = at.clamp(0, size - 1).floor(), at.clamp(0, size - 1) % 1
    pixels = torch.stack([low, (low + 1).clamp(max=size - 1)]).long()
    return pixels, torch.stack([1 - far, far]), (at >= -1) & (at <= size)


@library.op(differentiable=["input"])
def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int,
    aligned: bool,
) -> Tensor:  # fmt: skip
    """The mean of bilinear samples in each part of each region."""
    low, high = (rois[:, 1:] * spatial_scale - 0.5 * aligned).view(-1, 2, 2).unbind(1)
    high = high if aligned else torch.maximum(high, low + 1)
    made = input.new_empty(len(rois), input.shape[1], pooled_height, pooled_width)
    for at, image in enumerate(rois[:, 0].long()):
        x, near_x, inside_x = bilinear(low[at, 0], high[at, 0], pooled_width, sampling_ratio, input.shape[3])
        y, near_y, inside_y = bilinear(low[at, 1], high[at, 1], pooled_height, sampling_ratio, input.shape[2])
        taps = input[image][:, y][..., x] * near_x * near_y[..., None, None, None]
        made[at] = taps.sum((1, 4)).where(inside_y[..., None, None] & inside_x, 0).mean((2, 4))
    return made


@roi_align.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    rois = torch.cat([make.randint(0, 2, 4, 1), boxes(make, 4, 10)], 1)
    yield make.randn(2, 3, 8, 9), rois, 0.5, 3, 2, 2, True
    yield make.randn(2, 3, 8, 9), rois, 0.75, 2, 2, 0, False


roi_align.domain(
    lambda input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned: are_regions(input, rois)
)


def parts(start: Tensor, end: Tensor, bins: int, size: int) -> Tensor:
    """Which of `size` pixels are in each of `bins` parts of an interval, including the pixel `end`: (bins, size)."""
    width = (end - start + 1).clamp(min=1) / bins
    part, pixel = torch.arange(bins).to(start)[:, None], torch.arange(size).to(start)
    return (pixel >= start + (part * width).floor()) & (pixel < start + ((part + 1) * width).ceil())


@library.op(differentiable=["input"])
def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The maximum in each part of each region, and its position in the image; 0 and -1 for an empty part."""
    low, high = (rois[:, 1:] * spatial_scale + 0.5).floor().view(-1, 2, 2).unbind(1)
    made = input.new_empty(len(rois), input.shape[1], pooled_height, pooled_width)
    places, images = torch.empty_like(made, dtype=torch.int32), functional.pad(input.flatten(2), (0, 1))
    for at, image in enumerate(rois[:, 0].long()):
        columns = parts(low[at, 0], high[at, 0], pooled_width, input.shape[3])
        rows = parts(low[at, 1], high[at, 1], pooled_height, input.shape[2])
        part = functional.pad((rows[:, None, :, None] & columns[:, None]).flatten(2), (0, 1))
        best, place = images[image][:, None, None].where(part, -torch.inf).max(-1)
        made[at], places[at] = best.where(part.any(-1), 0), place.where(part.any(-1), -1)
    return made, places


@roi_pool.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    rois = torch.cat([make.randint(0, 2, 4, 1), boxes(make, 4, 10)], 1)
    yield make.randn(2, 3, 8, 9), rois, 0.5, 3, 2


roi_pool.domain(lambda input, rois, spatial_scale, pooled_height, pooled_width: are_regions(input, rois))


@library.op
def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int,
    pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """Correlate images with filters whose taps are each moved by a separate offset."""
    (high, wide), (rows, columns), (height, width) = weight.shape[2:], offset.shape[2:], input.shape[2:]
    grid = torch.meshgrid(*map(torch.arange, (high, wide, rows, columns)), indexing="ij")
    i, j, row, column = torch.stack(grid).to(offset)
    down, right = offset.reshape(len(input) * offset_groups, high, wide, 2, rows, columns).unbind(3)
    y = (i * dilation_h - pad_h + row * stride_h + down).clamp(-2, height).flatten(1)
    x = (j * dilation_w - pad_w + column * stride_w + right).clamp(-2, width).flatten(1)
    images = functional.pad(input, (2, 2, 2, 2)).reshape(len(y), input.shape[1] // offset_groups, -1)
    at, dy, dx = (y.floor().long() + 2) * (width + 4) + x.floor().long() + 2, y - y.floor(), x - x.floor()
    corners = [(0, (1 - dy) * (1 - dx)), (1, (1 - dy) * dx), (width + 4, dy * (1 - dx)), (width + 5, dy * dx)]
    places = [((at + step)[:, None].expand(-1, images.shape[1], -1), near[:, None]) for step, near in corners]
    taps: Any = sum(images.gather(2, place) * near for place, near in places)
    taps = taps * mask.reshape(len(y), 1, -1) if use_mask else taps
    made: Tensor = weight.unflatten(0, (groups, -1)).flatten(2) @ taps.reshape(len(input), groups, -1, rows * columns)
    return made.reshape(len(input), -1, rows, columns) + bias[:, None, None]


@deform_conv2d.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Any]:
    images, offset, bias = make.randn(2, 4, 7, 6), make.randn(2, 24, 4, 7), make.randn(6)
    yield images, make.randn(6, 2, 3, 2), offset, make.rand(2, 12, 4, 7), bias, 2, 1, 1, 1, 1, 1, 2, 2, True
    yield images, make.randn(6, 4, 3, 2), offset[:, :12], make.rand(2, 1), bias, 2, 1, 1, 1, 1, 1, 1, 1, False
