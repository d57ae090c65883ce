"""The CUDA kernels and their launches, run on the CPU: indices, tails, layouts, dtypes, synchronization, memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional

from opwright.checker import sanitize
from tests.integration.lltm.on_host import ROOT, OnHost, write_library
from tests.integration.lltm.test_operators import CUDA_TOLERANCES, LAYOUTS, compare, compare_single_gradient, drawn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.sample(of="long", by="file")

WAYS = ("small", "large", "narrow")
# Around the widths of vectors, warps and tiles: multiples of each, and sizes that are multiples of none.
# The last but one uses the larger tiles; the input of the last one is multiplied for all steps in one product.
SIZES = [
    *((0, 3, 4), (3, 2, 0), (1, 1, 1), (9, 5, 8), (16, 32, 128), (40, 16, 24), (33, 8, 136), (70, 6, 20)),
    *((60, 3, 250), (4, 70, 12)),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> OnHost:
    return OnHost(write_library(tmp_path_factory.mktemp("lltm_on_host")))


def compare_on(host: OnHost, name: str, arguments: list[Tensor]) -> None:
    compare(host.loaded, name, arguments, CUDA_TOLERANCES)


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(["cell", "sequence"]),
    way=st.sampled_from(WAYS),
    batch=st.integers(0, 70),
    features=st.integers(0, 40),
    state=st.integers(0, 40) | st.sampled_from([64, 100, 128]),
    dtype=st.sampled_from(list(CUDA_TOLERANCES)),
)
def test_every_size_and_dtype_matches_the_reference(
    host: OnHost, name: str, way: str, batch: int, features: int, state: int, dtype: torch.dtype
) -> None:
    with host.way(way):
        compare_on(host, name, drawn(name, batch, features, state, dtype))


@pytest.mark.parametrize("way", WAYS)
def test_the_edges_of_vectors_and_blocks_are_correct(host: OnHost, name: str, way: str) -> None:
    with host.way(way):
        for size in SIZES:
            for dtype in CUDA_TOLERANCES:
                compare_on(host, name, drawn(name, *size, dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", WAYS)
def test_any_strides_are_supported(host: OnHost, name: str, way: str, layout: str) -> None:
    with host.way(way):
        for size in ((16, 12, 24), (5, 6, 7)):
            for dtype in (torch.float32, torch.float16):
                compare_on(host, name, [LAYOUTS[layout](argument) for argument in drawn(name, *size, dtype)])


EXPANDED: dict[str, Callable[[Tensor], Tensor]] = {
    "of a sum": Tensor.sum,
    "of a sum of rows": lambda x: (x.sum(-1) * torch.arange(x.shape[-2])).sum(),
    "of a sum of columns": lambda x: (x.sum(-2) * torch.arange(x.shape[-1])).sum(),
}


@pytest.mark.parametrize("expanded", EXPANDED)
@pytest.mark.parametrize("size", [(6, 4, 8), (5, 3, 7)])
def test_expanded_gradients_are_read_without_a_copy(
    host: OnHost, name: str, size: tuple[int, int, int], expanded: str
) -> None:
    found = []
    for call in (getattr(host.loaded.ops, name), host.loaded.library.ops[name].reference):
        inputs = [argument.requires_grad_() for argument in drawn(name, *size, torch.float64)]
        loss = sum(EXPANDED[expanded](result) for result in call(*inputs))
        found.append(torch.autograd.grad(loss, inputs))  # type: ignore[arg-type]  # a tensor, because there are two results
    torch.testing.assert_close(*found)


def test_the_derivatives_match_finite_differences(host: OnHost, name: str) -> None:
    arguments = [argument.requires_grad_() for argument in drawn(name, 2, 1, 2, torch.float64)]
    op = getattr(host.loaded.ops, name)
    with host.way("large"):
        assert gradcheck(op, arguments)
        assert gradgradcheck(op, arguments)


@pytest.mark.parametrize("wanted", range(5))
def test_a_single_gradient_equals_that_of_a_full_backward(host: OnHost, name: str, wanted: int) -> None:
    compare_single_gradient(getattr(host.loaded.ops, name), drawn(name, 70, 8, 12), wanted)


def test_gradients_that_are_not_needed_are_not_computed(host: OnHost) -> None:
    input, weights, bias, h, cell = drawn("cell", 4, 3, 8)
    new_h, new_cell, gates = host.loaded.ops.cell_with_gates(input, weights, bias, h, cell)
    given = (new_h, None, None, input, weights, h, new_cell, gates)
    # The step, and the products.
    for wanted, launches in (([False, False, False, False, True], 1), ([True, False, False, False, True], 2)):
        before = host.launches()
        found = host.loaded.ops.cell_with_gates_backward(*given, wanted)
        assert [gradient is not None for gradient in found] == wanted
        assert host.launches() == before + launches


def counted(host: OnHost, call: Callable[[], object]) -> tuple[int, int]:
    """The number of kernels of the library, and of products of PyTorch, that a call runs."""
    before = host.launches()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        call()
    return host.launches() - before, sum(event.name == "aten::mm" for event in seen.events())


@pytest.mark.parametrize("batch", [16, 70])
def test_the_number_of_launches_is_as_documented(host: OnHost, name: str, batch: int) -> None:
    steps = 1 if name == "cell" else 3
    arguments = [argument.requires_grad_() for argument in drawn(name, batch, 4, 128)]
    op = getattr(host.loaded.ops, name)
    small, large = ((1, 0), (2, 1)) if name == "cell" else ((steps, 0), (steps, steps + 1))
    with torch.no_grad():
        assert counted(host, lambda: op(*arguments)) == small
        with host.way("large"):
            assert counted(host, lambda: op(*arguments)) == large
    assert counted(host, lambda: op(*arguments)) == small
    results = op(*arguments)
    grads = [torch.ones_like(result) for result in results]

    def backward() -> tuple[int, int]:
        return counted(host, lambda: torch.autograd.grad(results, arguments, grads, retain_graph=True))

    # A cell with few rows adds up the gradient of the bias in the same kernel.
    kernels = 2 + (batch > 32) if name == "cell" else steps + 2
    assert backward() == ((kernels, 0) if name == "cell" else (kernels + steps - 1, 3))
    with host.way("large"):
        assert backward() == (kernels, steps + 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_functions_of_every_half_precision_number_are_correctly_rounded(host: OnHost, dtype: torch.dtype) -> None:
    # All except -0, which the sum for a gate turns into 0.
    x = torch.arange(1 - 2**15, 2**15, dtype=torch.int32).to(torch.int16).view(dtype)[:, None]
    zeros, no_bias = torch.zeros_like(x), torch.zeros(3, dtype=dtype)
    of_input = torch.tensor([[0.0, 1.0]] * 3, dtype=dtype)  # each gate depends only on the input
    _, _, gates = host.loaded.ops.cell_with_gates(x, of_input, no_bias, zeros, zeros)
    new_h, _, _ = host.loaded.ops.cell_with_gates(zeros, of_input, no_bias, zeros, x)
    wide = x.double()
    for got, precise in (
        (gates[:, 0:1], wide.sigmoid()),
        (gates[:, 1:2], wide.sigmoid()),
        (gates[:, 2:3], functional.elu(wide)),
        (new_h, wide.tanh() / 2),
    ):
        expected = precise.to(dtype)
        steps = (got.contiguous().view(torch.int16).int() - expected.view(torch.int16).int()).abs()
        # The computation uses float32, whose smallest numbers a GPU may flush to zero.
        is_told = ~expected.isnan() & (precise.abs() > torch.finfo(torch.float32).tiny)
        assert int(steps[is_told].max()) <= 1
        assert bool((got.isnan() == expected.isnan()).all())


def test_half_precision_only_rounds_when_it_stores(host: OnHost) -> None:
    arguments = drawn("cell", 20, 300, 40, torch.float16)
    new_h, new_cell = host.loaded.ops.cell(*arguments)
    precise = host.loaded.library.ops["cell"].reference(*(argument.double() for argument in arguments))
    torch.testing.assert_close((new_h, new_cell), tuple(x.half() for x in precise), rtol=2**-10, atol=1e-6)


@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_values_are_propagated(host: OnHost, name: str, special: float) -> None:
    arguments = drawn(name, 4, 3, 8)
    arguments[0].view(-1)[0] = special
    arguments[4][2, 3] = special
    for way in WAYS:
        with host.way(way):
            got = getattr(host.loaded.ops, name)(*arguments)
        torch.testing.assert_close(got, host.loaded.library.ops[name].reference(*arguments), equal_nan=True)


def test_the_cuda_kernels_report_invalid_arguments(host: OnHost, name: str) -> None:
    arguments = drawn(name, 4, 3, 8)
    wrong = {0: arguments[0].long(), 1: arguments[1][:, 1:], 2: arguments[2][None], 3: arguments[3][0]}
    said = (
        "input must be float32, float64, float16 or bfloat16, got int64: convert it with .to(torch.float32)",
        "weights must have shape (24, 11), got (24, 10)",
        "bias must have shape (24,), got (1, 24)",
        "old_h must have 2 dimensions, got 1: shape (8,)",
    )
    before = host.launches()
    for (at, argument), message in zip(wrong.items(), said, strict=True):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            getattr(host.loaded.ops, name)(*arguments[:at], argument, *arguments[at + 1 :])
    assert host.launches() == before


SWEEP = """
import sys
from pathlib import Path
import torch
sys.path.insert(0, sys.argv[1])
from tests.integration.lltm import on_host, test_cuda_on_host as tests
host = on_host.OnHost(Path(sys.argv[2]))
for name in ("cell", "sequence"):
    for way in tests.WAYS:
        with host.way(way):
            for dtype in (torch.float32, torch.float16):
                for size in ((3, 4, 7), (20, 16, 24), (40, 2, 9)):
                    given = tests.drawn(name, *size, dtype)
                    tests.compare_on(host, name, given)
                    tests.compare_on(host, name, [tests.LAYOUTS["with an offset"](argument) for argument in given])
print("compared")
"""


def test_kernels_access_only_their_own_memory(tmp_path: Path) -> None:
    flags = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
    ran = subprocess.run(
        [sys.executable, "-c", SWEEP, str(ROOT), str(write_library(tmp_path, *flags))],
        env={**os.environ, **sanitize.environment(("address", "undefined"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "compared\n", ran.stderr[-4000:]
