from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn

from opwright.bundle.compare.scales import scales_of

if TYPE_CHECKING:
    from collections.abc import Callable


def scale_of(model: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    (scale,) = scales_of(model, inputs, (model(*(x.clone() for x in inputs)),))
    return scale


def test_the_scale_of_an_element_is_its_magnitude_if_nothing_cancels() -> None:
    scale = scale_of(lambda x: 2 * x, torch.tensor([1e3, -1.0, 1e-3]))
    assert scale.dtype == torch.float32
    # The input and the product each move by up to √3 units.
    assert all(1 <= ratio < 4 for ratio in (scale / torch.tensor([2e3, 2.0, 2e-3])).tolist())


def test_the_scale_of_a_sum_that_cancels_is_that_of_its_terms() -> None:
    scale = scale_of(lambda x: x.sum(1), torch.tensor([[1e3, -1e3, 1e-3], [1e-3, 1e-3, 1e-3], [1e3, 1e3, 1e3]]))
    assert 5e2 < float(scale[0]) <= 3e3
    assert 3e-3 <= float(scale[1]) < 1e-2


def test_no_scale_exceeds_the_largest_magnitude() -> None:
    scale = scale_of(lambda x: (1e6 * x).sin(), torch.tensor([1.0, 2.0, 3.0]))
    assert float(scale.max()) <= float((1e6 * torch.tensor([1.0, 2.0, 3.0])).sin().abs().max())


def test_an_element_that_is_always_zero_has_the_smallest_scale() -> None:
    scale = scale_of(torch.relu, torch.tensor([-5.0, 5.0]))
    assert 0 < float(scale[0]) < 1e-30
    assert scale_of(torch.relu, torch.tensor([-5.0])).tolist() == [0]


def test_an_element_decided_by_rounding_has_the_scale_of_its_jump() -> None:
    # The sum of the first two is 0 or a rounding error of either sign; the third is the largest magnitude.
    x = torch.tensor([0.1, 0.2, -0.3, 5.0])
    scale = scale_of(lambda x: torch.stack([(x[:3].sum() > 0).float(), x[3]]), x)
    assert float(scale[0]) == 5


def test_integers_and_complex_numbers_have_scales() -> None:
    assert scale_of(lambda x: x + 1, torch.tensor([3, 5])).tolist() == [4, 6]
    assert scale_of(lambda x: x * 1j, torch.tensor([3.0, 4.0])).tolist() == pytest.approx([4, 4], rel=0.4)
    assert scale_of(lambda x: x, torch.empty(0)).shape == (0,)


def test_a_model_that_rejects_moved_inputs_has_the_largest_magnitude_as_every_scale() -> None:
    def picky(x: Tensor) -> Tensor:
        if x[0] != 3:
            raise ValueError
        return x

    assert scale_of(picky, torch.tensor([3.0, 0.5])).tolist() == [3, 3]


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: Tensor
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add_(x)
        return x + 0


def test_the_buffers_of_a_model_are_restored() -> None:
    model = Remembers()
    x = torch.tensor([1.0, 2.0])
    scales_of(model, (x,), (model(x),))
    assert model.seen.tolist() == [1, 2]
    assert x.tolist() == [1, 2]
