"""The long-long-term-memory (LLTM) unit: a recurrent cell without a forget gate, as one step and as a sequence.

A cell computes three gates from its input and its old state: the input gate and the output gate are sigmoids, the
candidate cell is an ELU. The candidate times the input gate is added to the old cell; the new state is tanh of the new
cell times the output gate.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

library = opwright.Library("lltm", sources=["cpu/cell.cpp", "cpu/sequence.cpp", "cuda.cu"])


class Step(NamedTuple):
    """The results of a step, each (B, H)."""

    new_h: Tensor
    new_cell: Tensor
    input_gate: Tensor
    output_gate: Tensor
    candidate: Tensor


@library.op
def cell(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the unit.

    With the gates (i, o, c) = weights [old_h, input] + bias, split in three: new_cell = old_cell + elu(c) sigmoid(i),
    and new_h = tanh(new_cell) sigmoid(o).

    Args:
        input: (B, I), float32, float64 or bfloat16; on a GPU also float16. All arguments may have any strides.
        weights: (3 H, H + I), with the dtype and device of `input`, like all other arguments.
        bias: (3 H).
        old_h: (B, H), the state after the previous step.
        old_cell: (B, H), the cell after the previous step.

    Returns:
        new_h and new_cell, each (B, H), contiguous.

    Raises:
        RuntimeError: an argument has another shape, dtype or device.
    """
    step = _step(input, weights, bias, old_h, old_cell)
    return step.new_h.contiguous(), step.new_cell.contiguous()


@cell.for_training
def cell_with_gates(
    input: Tensor,
    weights: Tensor,
    bias: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The results of `cell`, and the gates, (B, 3 H): input gate, output gate and candidate cell, concatenated."""
    step = _step(input, weights, bias, old_h, old_cell)
    return step.new_h.contiguous(), step.new_cell.contiguous(), torch.cat(step[2:], dim=1)


@cell_with_gates.backward(saves=("input", "weights", "old_h", "result_1", "result_2"))
def cell_with_gates_backward(
    grad_0: Optional[Tensor],
    grad_1: Optional[Tensor],
    grad_2: Optional[Tensor],
    input: Tensor,
    weights: Tensor,
    old_h: Tensor,
    result_1: Tensor,
    result_2: Tensor,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The requested gradients of a step, from the new cell and the gates."""
    to_products, to_old_cell = _through_step(grad_0, grad_1, grad_2, result_1, result_2)
    to_joined = to_products @ weights
    found = (
        to_joined[:, old_h.shape[1] :],
        to_products.T @ torch.cat([old_h, input], dim=1),
        to_products.sum(dim=0),
        to_joined[:, : old_h.shape[1]],
        to_old_cell,
    )
    return _laid_out((input, weights, old_h), found, wanted)


@library.op
def sequence(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The steps of a sequence, each with the state and the cell of the previous step.

    Args:
        input: (T, B, I) with T of at least 1; dtypes and the other arguments as for `cell`.
        weights: (3 H, H + I).
        bias: (3 H).
        old_h: (B, H), the state before the first step.
        old_cell: (B, H), the cell before the first step.

    Returns:
        The states after each step, (T, B, H), and the cell after the last one, (B, H), contiguous.

    Raises:
        RuntimeError: an argument has another shape, dtype or device.
    """
    states = []
    for one in input:
        old_h, old_cell = _step(one, weights, bias, old_h, old_cell)[:2]
        states.append(old_h)
    return torch.stack(states), old_cell.contiguous()


@sequence.for_training
def sequence_with_gates(
    input: Tensor,
    weights: Tensor,
    bias: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The results of `sequence`, and the cells (T, B, H) and gates (T, B, 3 H) of all steps."""
    steps = []
    for one in input:
        steps.append(_step(one, weights, bias, old_h, old_cell))
        old_h, old_cell = steps[-1][:2]
    gates = [torch.cat(step[2:], dim=1) for step in steps]
    cells = torch.stack([step.new_cell for step in steps])
    return torch.stack([step.new_h for step in steps]), old_cell.clone().contiguous(), cells, torch.stack(gates)


@sequence_with_gates.backward(saves=("input", "weights", "old_h", "result_0", "result_2", "result_3"))
def sequence_with_gates_backward(
    grad_0: Optional[Tensor],
    grad_1: Optional[Tensor],
    grad_2: Optional[Tensor],
    grad_3: Optional[Tensor],
    input: Tensor,
    weights: Tensor,
    old_h: Tensor,
    result_0: Tensor,
    result_2: Tensor,
    result_3: Tensor,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The requested gradients of a sequence, from its states, cells and gates."""
    steps, state = input.shape[0], old_h.shape[1]
    recurrent, of_input = weights[:, :state], weights[:, state:]
    carried_h = torch.zeros_like(old_h)
    carried_cell = torch.zeros_like(old_h) if grad_1 is None else grad_1
    products = []
    for at in reversed(range(steps)):
        to_h = carried_h if grad_0 is None else carried_h + grad_0[at]
        to_cell = carried_cell if grad_2 is None else carried_cell + grad_2[at]
        to_gates = None if grad_3 is None else grad_3[at]
        to_products, carried_cell = _through_step(to_h, to_cell, to_gates, result_2[at], result_3[at])
        carried_h = to_products @ recurrent
        products.append(to_products)
    all_products = torch.stack(products[::-1])
    earlier = torch.cat([old_h[None], result_0[:-1]])
    found = (
        all_products @ of_input,
        torch.einsum("tbg,tbd->gd", all_products, torch.cat([earlier, input], dim=2)),
        all_products.sum(dim=(0, 1)),
        carried_h,
        carried_cell,
    )
    return _laid_out((input, weights, old_h), found, wanted)


# Without these, the loops of the references would be unrolled into every graph.
@sequence.fake
def _(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    return input.new_empty(input.shape[0], *old_h.shape), input.new_empty(old_h.shape)


@sequence_with_gates.fake
def _(
    input: Tensor,
    weights: Tensor,
    bias: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    steps, batch, state = input.shape[0], *old_h.shape
    return (
        input.new_empty(steps, batch, state),
        input.new_empty(batch, state),
        input.new_empty(steps, batch, state),
        input.new_empty(steps, batch, weights.shape[0]),
    )


@sequence_with_gates_backward.fake
def _(
    grad_0: Optional[Tensor],
    grad_1: Optional[Tensor],
    grad_2: Optional[Tensor],
    grad_3: Optional[Tensor],
    input: Tensor,
    weights: Tensor,
    old_h: Tensor,
    result_0: Tensor,
    result_2: Tensor,
    result_3: Tensor,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _laid_out((input, weights, old_h), (input, weights, weights[:, 0], old_h, old_h), wanted)


def _step(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Step:
    gates = functional.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    input_gate = torch.sigmoid(gates[0])
    output_gate = torch.sigmoid(gates[1])
    candidate = functional.elu(gates[2])
    new_cell = old_cell + candidate * input_gate
    return Step(torch.tanh(new_cell) * output_gate, new_cell, input_gate, output_gate, candidate)


def _through_step(
    to_new_h: Tensor | None, to_new_cell: Tensor | None, to_gates: Tensor | None, new_cell: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the products before the gates, (B, 3 H), and of the old cell, from those of a step's results."""
    input_gate, output_gate, candidate = gates.chunk(3, dim=1)
    to_input, to_output, to_candidate = (0, 0, 0) if to_gates is None else to_gates.chunk(3, dim=1)
    # An absent gradient is zero, and zero times NaN is NaN.
    to_new_h, to_cell = (torch.zeros_like(new_cell) if one is None else one for one in (to_new_h, to_new_cell))
    squashed = torch.tanh(new_cell)
    to_cell = to_cell + to_new_h * output_gate * (1 - squashed * squashed)
    to_output = to_output + to_new_h * squashed
    to_input = to_input + to_cell * candidate
    to_candidate = to_candidate + to_cell * input_gate
    # Below zero the candidate is exp(x) - 1, so its derivative is the candidate plus one.
    slope = torch.where(candidate > 0, torch.ones_like(candidate), candidate + 1)
    products = (
        to_input * input_gate * (1 - input_gate),
        to_output * output_gate * (1 - output_gate),
        to_candidate * slope,
    )
    return torch.cat(products, dim=1), to_cell


def _laid_out(
    saved: tuple[Tensor, Tensor, Tensor], gradients: tuple[Tensor, ...], wanted: Sequence[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Each requested gradient, with the strides of its argument if that was saved; None for the others."""
    input, weights, old_h = saved
    rows = old_h.new_empty(old_h.shape)
    layouts = (input, weights, weights.new_empty(weights.shape[0]), old_h, rows)
    found = [
        torch.empty_like(layout).copy_(gradient) if is_wanted else None
        for layout, gradient, is_wanted in zip(layouts, gradients, wanted, strict=True)
    ]
    return tuple(found)  # type: ignore[return-value]  # None is an undefined tensor


def _given(make: Make, shape: tuple[int, ...], state: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The arguments of a call: an input of `shape`, and weights as small as those of a new layer."""
    batch, features = shape[-2:]
    scale = max(state, 1) ** -0.5
    weights = make.randn(3 * state, state + features) * scale
    return make.randn(*shape), weights, make.randn(3 * state), make.randn(batch, state), make.randn(batch, state)


@cell.samples(dtypes=(torch.float64, torch.bfloat16))
def _(make: Make) -> Iterator[tuple[Tensor, ...]]:
    batch, features, state = make.size(9), make.size(5), make.size(8)
    yield _given(make, (batch, features), state)
    yield _given(make, (3, 4), 7)
    yield _given(make, (12, 2), 9)  # a batch for a small step, but not a state
    yield _given(make, (11, 6), 16)  # a small step in bfloat16
    yield _given(make, (5, 3), 43)  # one column more than a block of the bias's gradient


@sequence.samples(dtypes=(torch.float64, torch.bfloat16))
def _(make: Make) -> Iterator[tuple[Tensor, ...]]:
    batch, features, state = make.size(9), make.size(5), make.size(8)
    yield _given(make, (3, batch, features), state)
    yield _given(make, (1, 2, 4), 7)
    # Long enough for the kernel to repack the weights; then rows and columns in blocks of every size.
    yield _given(make, (25, make.size(12), 3), 4)
    yield _given(make, (24, 14, 2), 23)
    yield _given(make, (24, 7, 2), 22)  # the same with an even state, for pairs of bfloat16


# Errors that a kernel without a check would report in different words.
@cell.errors
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    input, *others, old_h, old_cell = _given(make, (3, 4), 7)
    yield "input must have 2 dimensions", (input[None], *others, old_h, old_cell)
    yield "old_h must have 2 dimensions", (input, *others, old_h[None], old_cell)


@sequence.errors
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    input, *others, old_h, old_cell = _given(make, (2, 3, 4), 7)
    yield "input must have 3 dimensions", (input[0], *others, old_h, old_cell)
    yield "input must have at least one step", (input[:0], *others, old_h, old_cell)
    yield "old_h must have 2 dimensions", (input, *others, old_h[None], old_cell)


def _labelled(batch: int, features: int, state: int) -> str:
    return f"B {batch}, I {features}, H {state}"


# As when training a first layer: the weights have a gradient, the data does not.
@cell.sweep(gradients=("weights", "bias"))
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    for batch, features, state in ((16, 32, 128), (32, 64, 256), (64, 256, 512), (256, 512, 1024)):
        yield _labelled(batch, features, state), _given(make, (batch, features), state)


@sequence.sweep(gradients=("weights", "bias"))
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    for steps, batch, features, state in ((16, 16, 32, 128), (32, 32, 64, 256)):
        yield f"T {steps}, {_labelled(batch, features, state)}", _given(make, (steps, batch, features), state)


@functools.cache
def _matrix(rows: int, columns: int, like: tuple[torch.dtype, torch.device]) -> Tensor:
    """A matrix for a floor: uninitialised memory can contain values that are slow to multiply."""
    return torch.rand(rows, columns, dtype=torch.float32, device=like[1]).to(like[0])


@cell.floor("PyTorch's bare GEMM")
def _(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Tensor:
    return _matrix(len(input), weights.shape[1], (input.dtype, input.device)) @ weights.T


@cell.floor("PyTorch's bare GEMM for the weights' gradient", direction="backward")
def _(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Tensor:
    like = (input.dtype, input.device)
    return _matrix(len(input), weights.shape[0], like).T @ _matrix(len(input), weights.shape[1], like)


@sequence.floor("PyTorch's bare GEMMs")
def _(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> list[Tensor]:
    recurrent = weights[:, : old_h.shape[1]].T
    return [input.flatten(0, 1) @ weights[:, old_h.shape[1] :].T, *(old_h @ recurrent for _ in input)]


@sequence.floor("PyTorch's bare GEMMs", direction="backward")
def _(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> list[Tensor]:
    like = (input.dtype, input.device)
    rows = input.shape[0] * input.shape[1]
    of_weights = _matrix(rows, weights.shape[0], like).T @ _matrix(rows, weights.shape[1], like)
    to_step = _matrix(len(old_h), weights.shape[0], like)
    return [of_weights, *(to_step @ weights[:, : old_h.shape[1]] for _ in input[1:])]
