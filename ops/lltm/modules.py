"""Modules of the cell with the signatures of nn.LSTMCell and nn.LSTM; import `lltm.modules` with ops/ on the path."""

from __future__ import annotations

import functools
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._jit_internal import is_scripting  # torch.jit.is_scripting, which mypy does not find there
from torch.nn import functional

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright import Library

_HERE = Path(__file__).resolve().parent


class _Recurrent(nn.Module):
    """The base class of both modules, with the parameters and the operator."""

    def __init__(self, operator: str, input_size: int, hidden_size: int, *, bias: bool, native: bool) -> None:
        _check_positive(input_size, "input_size")
        _check_positive(hidden_size, "hidden_size")
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.has_bias = bias
        self.native = native
        self._operator_name = operator
        self._operator = _callable(operator, native=native)

    def reset_parameters(self) -> None:
        """Draw the parameters from [-1/sqrt(H), 1/sqrt(H)], as `nn.LSTM` does."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)
        for no_bias in self.buffers():
            nn.init.zeros_(no_bias)

    def extra_repr(self) -> str:
        """The sizes and the arguments that are not at their defaults."""
        disabled = [name for name, enabled in (("bias", self.has_bias), ("native", self.native)) if not enabled]
        return ", ".join([str(self.input_size), str(self.hidden_size), *(f"{name}=False" for name in disabled)])

    def _add_layer(
        self, suffix: str, features: int, device: torch.device | str | int | None, dtype: torch.dtype | None
    ) -> None:
        state = self.hidden_size
        weights = torch.empty(3 * state, state + features, device=device, dtype=dtype)
        bias = torch.empty(3 * state, device=device, dtype=dtype)
        self.register_parameter(f"weights{suffix}", nn.Parameter(weights))
        if self.has_bias:
            self.register_parameter(f"bias{suffix}", nn.Parameter(bias))
        else:
            self.register_buffer(f"bias{suffix}", bias, persistent=False)

    def __getstate__(self) -> dict[str, Any]:
        # Operators and references are looked up again when the module is loaded.
        return {name: value for name, value in self.__dict__.items() if name not in {"_operator", "_scripted"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch's own
        self._operator = _callable(self._operator_name, native=self.native)

    def __prepare_scriptable__(self) -> _Recurrent:
        if not self.native:
            msg = (
                f"{type(self).__name__} with native=False is plain Python, which torch.jit.script does not support: "
                "script one with native=True, whose load_state_dict accepts the parameters of this one"
            )
            raise ValueError(msg)
        return self


class LLTMCell(_Recurrent):
    """A long-long-term-memory cell, `lltm::cell`, with the signature of `nn.LSTMCell`.

    Args:
        input_size: I, the features of an input.
        hidden_size: H, the size of the state and of the cell.
        bias: whether the gates have a bias.
        device: the device of the parameters.
        dtype: their dtype; `cell` in op.py lists the supported ones.
        native: whether to compute with the native operator, which the first module opens, and builds if necessary;
            otherwise with its reference.

    Attributes:
        weights: (3 H, H + I): rows for input gate, output gate and candidate, columns for state and input.
        bias: (3 H); without a bias a buffer of zeros, which is not part of the state dict.

    Raises:
        ValueError: a size is less than 1.
        OpwrightError: the operator cannot be built or loaded; the class shows which.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        native: bool = True,
    ) -> None:
        super().__init__("cell", input_size, hidden_size, bias=bias, native=native)
        self._add_layer("", input_size, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """One step.

        Args:
            input: (B, I), or (I) without a batch.
            hx: the state and the cell from the last step, each (B, H), or (H); zeros if None.

        Returns:
            The new state and the new cell, of the same shape.

        Raises:
            ValueError: a shape is wrong.
            RuntimeError: a dtype or a device is wrong.
        """
        sizes = input.shape
        rank = len(sizes)
        if rank < 1 or rank > 2 or sizes[rank - 1] != self.input_size:
            msg = (
                f"input must have shape (batch, input_size) or (input_size), with input_size {self.input_size}, "
                f"got {list(sizes)}"
            )
            raise ValueError(msg)
        expected = [sizes[0], self.hidden_size] if rank == 2 else [self.hidden_size]
        if hx is None:
            old_h = old_cell = input.new_zeros(expected)
        else:
            old_h, old_cell = hx
            axes = "batch, hidden_size" if rank == 2 else "hidden_size"
            _check_state(old_h, old_cell, expected, axes)
        if rank == 2:
            return self._step(input, old_h, old_cell)
        new_h, new_cell = self._step(input.unsqueeze(0), old_h.unsqueeze(0), old_cell.unsqueeze(0))
        return new_h.squeeze(0), new_cell.squeeze(0)

    def _step(self, input: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
        if is_scripting():
            results: tuple[Tensor, Tensor] = torch.ops.lltm.cell(input, self.weights, self.bias, old_h, old_cell)
            return results
        return self._operator(input, self.weights, self.bias, old_h, old_cell)


class LLTM(_Recurrent):
    """Layers of long-long-term-memory cells over whole sequences, `lltm::sequence`, with the signature of `nn.LSTM`.

    Args:
        input_size: I, the features of an input.
        hidden_size: H, the size of the state and of the cell.
        num_layers: L; the input of each layer except the first is the output of the previous one.
        bias: whether the gates have a bias.
        batch_first: whether the batch comes before the steps in input and output.
        dropout: the probability of dropping an element between two layers in training.
        device: the device of the parameters.
        dtype: their dtype; `cell` in op.py lists the supported ones.
        native: whether to compute with the native operator, which the first module opens, and builds if necessary;
            otherwise with its reference.

    Attributes:
        weights_l0: (3 H, H + I): rows for input gate, output gate and candidate, columns for state and input. Those of
            the other layers are weights_l1 and so on, (3 H, 2 H).
        bias_l0: (3 H), and so on; without a bias buffers of zeros, which are not part of the state dict.

    Raises:
        ValueError: a size is less than 1, or `dropout` is not a probability.
        OpwrightError: the operator cannot be built or loaded; the class shows which.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        native: bool = True,
    ) -> None:
        _check_positive(num_layers, "num_layers")
        if not 0 <= dropout <= 1:
            msg = f"dropout must be a probability, from 0 to 1, got {dropout}"
            raise ValueError(msg)
        if dropout > 0 and num_layers == 1:
            warnings.warn("dropout applies only between layers, and there is only one: it has no effect", stacklevel=2)
        super().__init__("sequence", input_size, hidden_size, bias=bias, native=native)
        self.num_layers = num_layers
        self.batch_first = batch_first
        self.dropout = float(dropout)
        for layer in range(num_layers):
            self._add_layer(f"_l{layer}", hidden_size if layer else input_size, device, dtype)
        self.reset_parameters()

    def forward(
        self,
        input: Tensor,
        hx: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """All steps of a sequence, through all layers.

        Args:
            input: (T, B, I), or with `batch_first` (B, T, I), with T of at least 1; (T, I) without a batch.
            hx: each layer's state and cell before the first step, each (L, B, H), or (L, H); zeros if None.

        Returns:
            The last layer's states after each step, (T, B, H), (B, T, H) or (T, H); and each layer's state and cell
            after the last one, each (L, B, H) or (L, H). With one layer, its last state is a view of its
            states.

        Raises:
            ValueError: a shape is wrong.
            RuntimeError: a dtype or a device is wrong, or there is no step.
        """
        sizes = input.shape
        rank = len(sizes)
        if rank < 2 or rank > 3 or sizes[rank - 1] != self.input_size:
            axes = "batch, steps" if self.batch_first else "steps, batch"
            msg = (
                f"input must have shape ({axes}, input_size) or (steps, input_size), with input_size "
                f"{self.input_size}, got {list(sizes)}"
            )
            raise ValueError(msg)
        output = input
        if rank == 2:
            output = input.unsqueeze(1)
        elif self.batch_first:
            output = input.transpose(0, 1)
        old_h, old_cell = self._start(output, hx, has_batch=rank > 2)
        last_h, last_cell = [], []
        for layer in range(self.num_layers):
            if layer > 0 and self.dropout > 0:
                output = functional.dropout(output, self.dropout, self.training)
            output, cell = self._run(layer, output, old_h[layer], old_cell[layer])
            last_h.append(output[-1:])
            last_cell.append(cell[None])
        if self.num_layers == 1:
            h_n, c_n = last_h[0], last_cell[0]
        else:
            h_n, c_n = torch.cat(last_h), torch.cat(last_cell)
        if rank == 2:
            return output.squeeze(1), (h_n.squeeze(1), c_n.squeeze(1))
        return output.transpose(0, 1) if self.batch_first else output, (h_n, c_n)

    def _start(
        self,
        input: Tensor,
        hx: tuple[Tensor, Tensor] | None,
        *,
        has_batch: bool,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Each layer's state and cell before the first step, for an input (T, B, I)."""
        if hx is None:
            zeros = input.new_zeros(input.size(1), self.hidden_size)
            return [zeros] * self.num_layers, [zeros] * self.num_layers
        h, cell = hx
        layers, size = self.num_layers, self.hidden_size
        expected = [layers, input.size(1), size] if has_batch else [layers, size]
        _check_state(h, cell, expected, f"num_layers, {'batch, ' if has_batch else ''}hidden_size")
        if not has_batch:
            h, cell = h.unsqueeze(1), cell.unsqueeze(1)
        return list(h.unbind()), list(cell.unbind())

    def _run(
        self,
        layer: int,
        input: Tensor,
        old_h: Tensor,
        old_cell: Tensor,
    ) -> tuple[Tensor, Tensor]:
        if is_scripting():
            weights, bias = self._scripted[layer]
            results: tuple[Tensor, Tensor] = torch.ops.lltm.sequence(input, weights, bias, old_h, old_cell)
            return results
        weights, bias = getattr(self, f"weights_l{layer}"), getattr(self, f"bias_l{layer}")
        return self._operator(input, weights, bias, old_h, old_cell)

    def extra_repr(self) -> str:
        """The sizes and the arguments that are not at their defaults."""
        parts = [super().extra_repr()]
        parts += [f"num_layers={self.num_layers}"] if self.num_layers > 1 else []
        parts += ["batch_first=True"] if self.batch_first else []
        parts += [f"dropout={self.dropout}"] if self.dropout > 0 else []
        return ", ".join(parts)

    def __prepare_scriptable__(self) -> _Recurrent:
        # TorchScript does not support attributes with computed names. A saved model still contains each tensor once.
        self._scripted = [
            (getattr(self, f"weights_l{layer}"), getattr(self, f"bias_l{layer}")) for layer in range(self.num_layers)
        ]
        return super().__prepare_scriptable__()


def _check_positive(size: int, name: str) -> None:
    if size < 1:
        msg = f"{name} must be 1 or more, got {size}"
        raise ValueError(msg)


def _check_state(h: Tensor, cell: Tensor, expected: list[int], axes: str) -> None:
    for at, tensor in enumerate((h, cell)):
        if list(tensor.shape) != expected:
            msg = f"hx[{at}] must have shape {expected}, ({axes}), got {list(tensor.shape)}"
            raise ValueError(msg)


def _callable(operator: str, *, native: bool) -> Callable[..., tuple[Tensor, Tensor]]:
    """The operator, or its reference."""
    if native:
        _open()
        return getattr(torch.ops.lltm, operator).default  # type: ignore[no-any-return]
    return _described().ops[operator].reference


@functools.cache
def _open() -> None:
    opwright.open(_HERE)


@functools.cache
def _described() -> Library:
    return opwright.library_at(_HERE)
