"""The cell in Python: an extension's forward and backward as one differentiable call, and that call as a Module."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def plain_cell(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The formulas of the extensions in plain PyTorch.

    Args:
        input: (B, I).
        weights: (3H, H + I): rows for the input gate, the output gate and the candidate; columns for
            `old_h` and `input`.
        bias: (3H,).
        old_h: (B, H).
        old_cell: (B, H).

    Returns:
        `new_h` and `new_cell`, each (B, H).
    """
    joined = torch.cat([old_h, input], dim=1)
    input_gate, output_gate, candidate = functional.linear(joined, weights, bias).chunk(3, dim=1)
    new_cell = old_cell + functional.elu(candidate) * torch.sigmoid(input_gate)
    return torch.tanh(new_cell) * torch.sigmoid(output_gate), new_cell


class LLTMFunction(Function):
    """One step through an extension, which autograd can differentiate once.

    `LLTMFunction.apply(extension, input, weights, bias, old_h, old_cell)`, with the tensors of `plain_cell`.
    """

    @staticmethod
    def forward(ctx: Any, extension: ModuleType, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        """Call the extension, and save the tensors that its backward needs."""
        new_h, new_cell, gates, joined = extension.forward(*tensors)
        _, weights, *_ = tensors
        ctx.extension = extension
        ctx.save_for_backward(new_cell, gates, joined, weights)
        return new_h, new_cell

    @staticmethod
    def backward(ctx: Any, grad_h: Tensor, grad_cell: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients that autograd requests, and None for the others.

        Raises:
            RuntimeError: the gradients are to be differentiated again.
        """
        # Does not use once_differentiable: with it, a second derivative through the saved tensors would be zero.
        if torch.is_grad_enabled():
            msg = (
                "the gradients of an LLTM extension cannot be differentiated again, because autograd cannot see inside "
                "the extension: use plain_cell, or omit create_graph=True"
            )
            raise RuntimeError(msg)
        _, *wanted = ctx.needs_input_grad
        return (None, *ctx.extension.backward(grad_h, grad_cell, *ctx.saved_tensors, wanted))


def cell_of(extension: ModuleType) -> Callable[..., tuple[Tensor, Tensor]]:
    """The cell of an extension, with the signature of `plain_cell`.

    Args:
        extension: a module built from lltm.cpp, or from lltm_cuda.cpp and lltm_cuda_kernel.cu.
    """
    return functools.partial(LLTMFunction.apply, extension)


class LLTM(nn.Module):
    """A long-long-term-memory cell: an LSTM cell without a forget gate, with an ELU for the candidate.

    Args:
        input_features: the size I of an input.
        state_size: the size H of the state.
        cell: the function that computes a step: `cell_of(extension)`, or `plain_cell`.
    """

    def __init__(self, input_features: int, state_size: int, cell: Callable[..., tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.cell = cell
        self.weights = nn.Parameter(torch.empty(3 * state_size, state_size + input_features))
        self.bias = nn.Parameter(torch.empty(3 * state_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters from [-1/sqrt(H), 1/sqrt(H)], as `nn.LSTMCell` does."""
        bound = 1 / math.sqrt(self.weights.size(0) // 3)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """One step.

        Args:
            input: (B, I).
            state: `old_h` and `old_cell`, each (B, H).

        Returns:
            The new state.
        """
        return self.cell(input, self.weights, self.bias, *state)
