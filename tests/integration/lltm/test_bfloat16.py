"""The accuracy of bfloat16, on processors with and without bfloat16 product instructions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from tests.integration.lltm.conftest import compare_with
from tests.integration.lltm.test_operators import drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.loader.open import Loaded

# batch, features and state for each code path: a small step of one vector and of three, one with odd features, which
# pairs do not divide, and a large one
SIZES = [(16, 32, 128), (40, 6, 64), (40, 7, 64), (70, 9, 600)]
# for a sequence: two batches of pairs, an odd state, which has none, and a large one
LONG = [(16, 32, 128), (40, 6, 64), (30, 7, 63), (64, 32, 128)]


def results(call: Callable[..., tuple[Tensor, ...]], arguments: list[Tensor]) -> list[Tensor]:
    """The results of a call, followed by the gradients of all arguments."""
    inputs = [argument.detach().requires_grad_() for argument in arguments]
    found = call(*inputs)
    grads = [torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(result) for result in found]
    return [*(result.detach() for result in found), *torch.autograd.grad(found, inputs, grads)]


def errors(lltm: Loaded, name: str, size: tuple[int, int, int], steps: int = 1) -> list[tuple[float, float]]:
    """For each result and gradient, the error of the operator, and that of its reference in bfloat16.

    An error is the root mean square over all elements, relative to that of the exact result, which is computed in
    float64 from the same arguments.
    """
    op, reference = getattr(lltm.ops, name).default, lltm.library.ops[name].reference
    arguments = drawn(name, *size, torch.bfloat16, steps=steps)
    exact = results(reference, [argument.double() for argument in arguments])
    found = zip(exact, results(op, arguments), results(reference, arguments), strict=True)
    return [
        (float((got - right).norm() / right.norm()), float((plain - right).norm() / right.norm()))
        for right, got, plain in found
    ]


@pytest.mark.parametrize("size", SIZES)
def test_a_step_is_right_to_the_stated_error(lltm: Loaded, size: tuple[int, int, int]) -> None:
    found = errors(lltm, "cell", size)
    assert max(own for own, _ in found[:2]) <= 2.2e-3
    assert max(own for own, _ in found[2:]) <= 5e-3


@pytest.mark.parametrize("size", SIZES)
def test_a_step_is_as_accurate_as_plain_pytorch(lltm: Loaded, size: tuple[int, int, int]) -> None:
    new_h, new_cell, *gradients = errors(lltm, "cell", size)
    # With a margin for another processor's products, which may add in another order.
    assert new_h[0] <= 0.9 * new_h[1]
    assert new_cell[0] <= 1.02 * new_cell[1]
    assert all(own <= 1.2 * plain for own, plain in gradients)


@pytest.mark.parametrize("size", LONG)
def test_a_long_sequence_is_as_accurate_as_plain_pytorch(lltm: Loaded, size: tuple[int, int, int]) -> None:
    assert all(own <= 1.3 * plain for own, plain in errors(lltm, "sequence", size, steps=25))


@pytest.mark.parametrize("size", [*SIZES, (256, 64, 128)])
def test_results_are_bitwise_equal_for_any_number_of_threads(
    lltm: Loaded, name: str, size: tuple[int, int, int]
) -> None:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if "avx512_bf16" not in flags or "amx_bf16" in flags:
        pytest.skip("PyTorch's library may split a sum among threads")
    arguments = drawn(name, *size, torch.bfloat16, steps=25)
    op = getattr(lltm.ops, name).default
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(results(op, arguments))
    torch.set_num_threads(os.cpu_count() or 1)
    for others in found[1:]:
        assert all(torch.equal(other, one) for other, one in zip(others, found[0], strict=True))


WITHOUT = """
import opwright
from tests.integration.lltm import conftest, test_bfloat16 as tests
lltm = opwright.open(conftest.FOLDER)
for size in tests.SIZES:
    tests.test_a_step_is_right_to_the_stated_error(lltm, size)
    tests.test_a_step_is_as_accurate_as_plain_pytorch(lltm, size)
for size in tests.LONG:
    tests.test_a_long_sequence_is_as_accurate_as_plain_pytorch(lltm, size)
print("compared")
"""


@pytest.mark.usefixtures("lltm")  # builds it
@pytest.mark.parametrize("instruction_set", ["baseline", "avx2", "avx512"])
def test_a_processor_without_bfloat16_products_is_as_accurate(instruction_set: str) -> None:
    compare_with(instruction_set, WITHOUT)
