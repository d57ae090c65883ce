"""Tests that a backward operator returns each gradient with the strides of its argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch._ops import _OpNamespace as Ops

    from opwright.loader.open import Loaded


def tensors(shape: tuple[int, ...] = (4, 6)) -> dict[str, Tensor]:
    """Tensors of one shape in different layouts."""
    rows, columns = shape
    return {
        "row-major": torch.randn(shape, dtype=torch.float64),
        "transposed": torch.randn(columns, rows, dtype=torch.float64).T,
        "with gaps": torch.randn(rows, 2 * columns, dtype=torch.float64)[:, ::2],
        "one row repeated": torch.randn(1, columns, dtype=torch.float64).expand(shape),
    }


LAYOUTS = sorted(tensors())
# Each returns the gradients, and the arguments whose layouts they must have.
CALLS: dict[str, Callable[[Ops, Tensor, Tensor], tuple[Any, list[Tensor]]]] = {
    "two": lambda ops, g, x: (ops.mul_backward(g, x, g, [True, True]), [x, g]),
    "one of two": lambda ops, g, x: (ops.mul_backward(g, x, g, [True, False])[0], [x]),
    "an optional one": lambda ops, g, x: (
        ops.affine_backward(g, g, g, x, 2.0, "plus", None, False, None, [False, False, True])[2],
        [x],
    ),
    "a list": lambda ops, g, x: (ops.weighted_sum_backward(g, [x, g], g, [True, False])[0], [x, g]),
    "a list with None": lambda ops, g, x: (ops.sum_of_given_backward(g, [x, None], g, [True, False])[0][:1], [x]),
}


def strides(tensor: Tensor) -> list[int]:
    """The strides of dimensions with several elements."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", CALLS)
def test_a_native_gradient_has_the_strides_of_its_argument(native: Loaded, call: str, layout: str) -> None:
    g, x = torch.randn(4, 6, dtype=torch.float64), tensors()[layout]
    found, arguments = CALLS[call](native.ops, g, x)
    plain, _ = CALLS[call](native.ops, g, x.contiguous())
    for gradient, other, argument in zip(tree_leaves(found), tree_leaves(plain), arguments, strict=True):
        assert strides(gradient) == strides(torch.empty_like(argument))
        assert torch.equal(gradient, other)


def test_a_gradient_keeps_its_layout_if_the_backward_lacks_its_argument(native: Loaded) -> None:
    grad, result = tensors()["transposed"], torch.rand(4, 6, dtype=torch.float64)
    assert native.ops.sigmoid_backward(grad, result).is_contiguous()
