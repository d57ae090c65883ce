"""The native cell and sequence compared with their references: sizes, dtypes, layouts, gradients, instruction sets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.fx.experimental.proxy_tensor import make_fx

from tests.integration.lltm.conftest import compare_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.loader.open import Loaded

NAMES = ("input", "weights", "bias", "old_h", "old_cell")
TOLERANCES = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-9, 1e-10), torch.bfloat16: (5e-2, 5e-2)}
CUDA_TOLERANCES = {**TOLERANCES, torch.float16: (1e-2, 1e-2)}


def drawn(
    name: str, batch: int, features: int, state: int, dtype: torch.dtype = torch.float32, *, steps: int = 3
) -> list[Tensor]:
    generator = torch.Generator().manual_seed(batch + 100 * features + 10_000 * state)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    shape = (batch, features) if name == "cell" else (steps, batch, features)
    weights = normal(3 * state, state + features) * max(state, 1) ** -0.5
    return [normal(*shape), weights, normal(3 * state), normal(batch, state), normal(batch, state)]


def compare(
    lltm: Loaded, name: str, arguments: list[Tensor], tolerances: dict[torch.dtype, tuple[float, float]] = TOLERANCES
) -> None:
    """Compare the results and all gradients, with and without recording, with the reference."""
    op, reference = getattr(lltm.ops, name).default, lltm.library.ops[name].reference
    rtol, atol = tolerances[arguments[0].dtype]
    found = []
    for call in (op, reference):
        inputs = [argument.detach().requires_grad_() for argument in arguments]
        results = call(*inputs)
        grads = [torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(result) for result in results]
        found.append([*results, *torch.autograd.grad(results, inputs, grads)])
    with torch.no_grad():
        torch.testing.assert_close(list(op(*arguments)), found[1][:2], rtol=rtol, atol=atol)
    scales = [max(1.0, float(expected.detach().abs().max())) if expected.numel() else 1.0 for expected in found[1]]
    for got, expected, scale in zip(*found, scales, strict=True):
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol * scale)


def compare_single_gradient(op: Any, arguments: list[Tensor], wanted: int) -> None:
    """Check that the gradient of one argument is the same alone as in a full backward."""
    every = [argument.detach().requires_grad_() for argument in arguments]
    one = [argument.detach().requires_grad_(at == wanted) for at, argument in enumerate(arguments)]
    expected = torch.autograd.grad(sum(result.sum() for result in op(*every)), every)[wanted]
    (got,) = torch.autograd.grad(sum(result.sum() for result in op(*one)), one[wanted])
    torch.testing.assert_close(got, expected)


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(["cell", "sequence"]),
    batch=st.integers(0, 70),
    features=st.integers(1, 40),
    state=st.integers(0, 40) | st.sampled_from([64, 100, 128]),
    dtype=st.sampled_from(list(TOLERANCES)),
)
def test_every_size_and_dtype_matches_the_reference(
    lltm: Loaded, name: str, batch: int, features: int, state: int, dtype: torch.dtype
) -> None:
    compare(lltm, name, drawn(name, batch, features, state, dtype))


@pytest.mark.parametrize("size", [(16, 32, 128), (9, 5, 4), (65, 3, 8), (2, 7, 130), (48, 300, 256), (70, 9, 600)])
def test_the_small_and_large_paths_agree(lltm: Loaded, name: str, size: tuple[int, int, int]) -> None:
    compare(lltm, name, drawn(name, *size))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(16, 32, 128), (9, 5, 7), (7, 4, 20), (3, 4, 5), (33, 6, 20), (16, 3, 400)])
def test_a_long_sequence_matches_the_reference(lltm: Loaded, size: tuple[int, int, int], dtype: torch.dtype) -> None:
    compare(lltm, "sequence", drawn("sequence", *size, dtype, steps=30))


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.mT.contiguous().mT if x.dim() > 1 else x,
    "every second": lambda x: torch.stack([x, x], dim=-1)[..., 0],
    "with an offset": lambda x: torch.cat([x.flatten()[:3], x.flatten()])[3:].view(x.shape),
    "rows apart": lambda x: torch.cat([x, x], dim=-1)[..., : x.shape[-1]],
    "expanded": lambda x: x[..., :1].expand_as(x),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(16, 12, 20), (5, 6, 7)])
def test_any_strides_are_supported(lltm: Loaded, name: str, size: tuple[int, int, int], layout: str) -> None:
    arguments = [LAYOUTS[layout](argument) for argument in drawn(name, *size)]
    assert not all(argument.is_contiguous() and argument.storage_offset() == 0 for argument in arguments)
    compare(lltm, name, arguments)


def test_the_derivatives_match_finite_differences(lltm: Loaded, name: str) -> None:
    arguments = [argument.requires_grad_() for argument in drawn(name, 3, 2, 4, torch.float64)]
    op = getattr(lltm.ops, name)
    assert gradcheck(op, arguments)
    assert gradgradcheck(op, arguments)


@pytest.mark.parametrize("wanted", range(5))
def test_a_single_gradient_equals_that_of_a_full_backward(lltm: Loaded, name: str, wanted: int) -> None:
    compare_single_gradient(getattr(lltm.ops, name), drawn(name, 16, 8, 12), wanted)


def test_gradients_that_are_not_needed_are_not_computed(lltm: Loaded) -> None:
    input, weights, bias, h, cell = drawn("cell", 4, 3, 8)
    new_h, new_cell, gates = lltm.ops.cell_with_gates(input, weights, bias, h, cell)
    found = lltm.ops.cell_with_gates_backward(
        new_h, None, None, input, weights, h, new_cell, gates, [False, True, False, False, True]
    )
    assert [gradient is not None for gradient in found] == [False, True, False, False, True]


def test_results_do_not_depend_on_the_number_of_threads(lltm: Loaded, name: str) -> None:
    for size in ((16, 32, 128), (64, 70, 600)):
        arguments = drawn(name, *size)
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(torch.cat([result.flatten() for result in getattr(lltm.ops, name)(*arguments)]))
        torch.set_num_threads(os.cpu_count() or 1)
        for other in found[1:]:
            torch.testing.assert_close(other, found[0])


def test_only_the_training_form_returns_gates(lltm: Loaded) -> None:
    arguments = drawn("cell", 2, 3, 4)
    arguments[1].requires_grad_()
    assert "lltm.cell_with_gates.default" in make_fx(lltm.ops.cell)(*arguments).code
    with torch.no_grad():
        assert "lltm.cell_with_gates" not in make_fx(lltm.ops.cell)(*arguments).code


# A change to a valid call, and the expected message. The cell's arguments: (4, 3) input, (24, 11) weights and so on.
WRONG: dict[str, tuple[str, Callable[[Tensor], Tensor], str]] = {
    "an input of int64": (
        "input",
        Tensor.long,
        "input must be float32, float64 or bfloat16, got int64: convert it with .to(torch.float32)",
    ),
    "an input of float16": ("input", Tensor.half, "input must be float32, float64 or bfloat16, got float16"),
    "an input with one dimension fewer": ("input", lambda x: x.flatten(), "input must have "),
    "weights for other features": ("weights", lambda x: x[:, :-1], "weights must have shape (24, 11), got (24, 10)"),
    "weights of another dtype": ("weights", Tensor.double, "weights must be float32, got float64"),
    "a bias of one element": ("bias", lambda x: x[:1], "bias must have shape (24,), got (1,)"),
    "a bias of two dimensions": ("bias", lambda x: x[None], "bias must have shape (24,), got (1, 24)"),
    "a state of another batch": ("old_h", lambda x: x[:1], "old_h must have shape (4, 8), got (1, 8)"),
    "a state without a batch": ("old_h", lambda x: x[0], "old_h must have 2 dimensions, got 1: shape (8,)"),
    "a cell of another size": ("old_cell", lambda x: x[:, :1], "old_cell must have shape (4, 8), got (4, 1)"),
    "a cell of another dtype": ("old_cell", Tensor.bfloat16, "old_cell must be float32, got bfloat16"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_invalid_arguments_are_reported_before_memory_is_accessed(lltm: Loaded, name: str, wrong: str) -> None:
    which, change, message = WRONG[wrong]
    arguments = dict(zip(NAMES, drawn(name, 4, 3, 8), strict=True))
    arguments[which] = change(arguments[which])
    for form in (name, f"{name}_with_gates"):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            getattr(lltm.ops, form)(**arguments)


def test_a_sequence_without_steps_is_rejected(lltm: Loaded) -> None:
    arguments = drawn("sequence", 4, 3, 8)
    with pytest.raises(RuntimeError, match=re.escape("input must have at least one step, got shape (0, 4, 3)")):
        lltm.ops.sequence(arguments[0][:0], *arguments[1:])


BACKWARD: dict[str, tuple[int, Any, str]] = {
    "gates of another size": (7, torch.zeros(4, 8), "result_2 must have shape (4, 24), got (4, 8)"),
    "a gradient of another size": (0, torch.zeros(4, 1), "grad_0 must have shape (4, 8), got (4, 1)"),
    "a gradient of another dtype": (1, torch.zeros(4, 8).double(), "grad_1 must be float32, got float64"),
    "too few flags": (8, [True], "wanted must have 5 flags, for input, weights, bias, old_h and old_cell, got 1"),
}


@pytest.mark.parametrize("wrong", BACKWARD)
def test_an_invalid_backward_call_is_rejected(lltm: Loaded, wrong: str) -> None:
    input, weights, bias, h, cell = drawn("cell", 4, 3, 8)
    new_h, new_cell, gates = lltm.ops.cell_with_gates(input, weights, bias, h, cell)
    arguments: list[Any] = [new_h, new_cell, None, input, weights, h, new_cell, gates, [True] * 5]
    at, value, message = BACKWARD[wrong]
    arguments[at] = value
    with pytest.raises(RuntimeError, match=re.escape(message)):
        lltm.ops.cell_with_gates_backward(*arguments)


NARROWER = """
import opwright, torch
from tests.integration.lltm import conftest, test_operators as tests
lltm = opwright.open(conftest.FOLDER)
for name in ("cell", "sequence"):
    for size in ((16, 32, 128), (9, 5, 4), (5, 6, 7), (33, 3, 8)):
        for dtype in tests.TOLERANCES:
            steps = 3 if dtype is torch.bfloat16 else 25  # rounding errors accumulate over the steps
            tests.compare(lltm, name, tests.drawn(name, *size, dtype, steps=steps))
print("compared")
"""


@pytest.mark.usefixtures("lltm")  # builds it
@pytest.mark.parametrize("instruction_set", ["baseline", "avx2"])
def test_a_processor_with_narrower_vectors_computes_the_same(instruction_set: str) -> None:
    compare_with(instruction_set, NARROWER)


def test_the_library_uses_no_function_that_pytorch_2_11_lacks(lltm: Loaded) -> None:
    header = Path(torch.__file__).parent / "include/torch/csrc/stable/c/shim.h"
    newer = header.read_text(encoding="utf-8").partition("#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0")[2]
    names = set(re.findall(r"\b(torch_\w+)\(", newer))
    assert lltm.path is not None
    with lltm.path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        referred = {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
    assert "torch_call_dispatcher" in referred
    assert not referred & names
