"""Times the native LLTM against PyTorch's implementations of the same formulas.

    python benchmarks/lltm.py [--threads 1 2] [--seconds 3] [--json FILE] [--only TEXT]

One step of the cell, from the size in the tutorial (batch 16, 32 features, state 128) upwards: plain PyTorch; the same
with `torch.compile`; the tutorial's C++ of ATen calls (examples/lltm_extension), once with all gradients as in the
tutorial, and once with only the needed ones; the operator of ops/lltm; and the `addmm` that all of them contain. The
gradients are those of the weights and the bias, as in the training of a first layer. Then a sequence of 128 steps: a
Python loop over the plain cell, the operator, and `nn.LSTM` of the same sizes.

All rows of a table are timed in turn in each round. Prints medians, and the medians of the rounds' ratios. Compares all
results and gradients with plain PyTorch's before timing. The allocator keeps freed memory for the next call.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.benchmark import set_torch_threads

import opwright
from opwright.bencher.machine import machine_record
from opwright.bencher.rows import Prepared
from opwright.bencher.stopping import SpreadRule
from opwright.bencher.timer import Timing, measure

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "lltm_extension"
SIZES = [(16, 32, 128), (32, 64, 256), (64, 128, 512), (64, 256, 512), (128, 256, 1024), (256, 512, 1024)]
STEPS = 128
NATIVE, PLAIN, COMPILED, COMPOSED = "ops/lltm", "plain PyTorch", "torch.compile", "composed C++"
AS_TAUGHT = "composed C++, all gradients"

Cell = Callable[..., tuple[Tensor, Tensor]]


@dataclass
class Call:
    """The tensors of one call; `weights` and `bias` are trained."""

    input: Tensor
    weights: Tensor
    bias: Tensor
    old_h: Tensor
    old_cell: Tensor
    to_h: Tensor
    to_cell: Tensor

    @classmethod
    def of(cls, batch: int, features: int, state: int, *steps: int) -> Call:
        """Random tensors, with weights and bias as in a new layer."""
        bound = state**-0.5
        weights = torch.empty(3 * state, state + features).uniform_(-bound, bound)
        bias = torch.empty(3 * state).uniform_(-bound, bound)
        return cls(
            torch.randn(*steps, batch, features),
            weights.requires_grad_(),
            bias.requires_grad_(),
            torch.randn(batch, state),
            torch.randn(batch, state),
            torch.randn(*steps, batch, state),
            torch.randn(batch, state),
        )

    def run(self, cell: Cell) -> tuple[Tensor, Tensor]:
        """The forward call."""
        return cell(self.input, self.weights, self.bias, self.old_h, self.old_cell)

    def gradients(self, results: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        """The backward call."""
        return torch.autograd.grad(results, (self.weights, self.bias), (self.to_h, self.to_cell))


def plain_cell(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The step in plain PyTorch."""
    gates = functional.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    new_cell = old_cell + functional.elu(gates[2]) * torch.sigmoid(gates[0])
    return torch.tanh(new_cell) * torch.sigmoid(gates[1]), new_cell


def plain_sequence(input: Tensor, weights: Tensor, bias: Tensor, h: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """A Python loop over the plain cell."""
    states = []
    for one in input:
        h, cell = plain_cell(one, weights, bias, h, cell)
        states.append(h)
    return torch.stack(states), cell


def verify(call: Call, cells: dict[str, Cell], exact: Cell) -> None:
    """Exit if a result or a gradient differs from that of `exact` in float64 by more than rounding errors."""
    wide = Call(*(tensor.detach().double() for tensor in vars(call).values()))
    wide.weights.requires_grad_()
    wide.bias.requires_grad_()
    expected = _results_of(wide, exact)
    allowed = [max(1e-5, 4 * error) for error in _errors(_results_of(call, exact), expected)]
    for name, cell in cells.items():
        for at, (error, most) in enumerate(zip(_errors(_results_of(call, cell), expected), allowed, strict=True)):
            if not error <= most:
                sys.exit(f"{name}: result {at} is off by {error:.1e} of its maximum, so the times are meaningless")


def _results_of(call: Call, cell: Cell) -> list[Tensor]:
    results = call.run(cell)
    return [tensor.detach() for tensor in (*results, *call.gradients(results))]


def _errors(results: list[Tensor], expected: list[Tensor]) -> list[float]:
    return [float((got - right).abs().max() / right.abs().max()) for got, right in zip(results, expected, strict=True)]


def without_gradients(call: Call, cell: Cell) -> Callable[[], object]:
    """The forward call under `torch.no_grad`."""

    def run() -> None:
        with torch.no_grad():
            call.run(cell)

    return run


def seeds_backward(call: Call) -> Callable[[Any], None]:
    """The backward of the tutorial's benchmark: of the sum of all results, into `.grad`."""

    def run(loss: Tensor) -> None:
        loss.backward()
        call.weights.grad = call.bias.grad = None

    return run


def timed(call: Call, cells: dict[str, Cell], seconds: float, *, seeds: bool) -> dict[str, dict[str, Timing]]:
    """All rows of all directions."""
    rule = SpreadRule(seconds)
    joined, transposed = torch.cat([call.old_h, call.input], dim=1), call.weights.detach().T

    def addmm() -> object:
        with torch.no_grad():
            return torch.addmm(call.bias, joined, transposed)

    forward = {name: without_gradients(call, cell) for name, cell in cells.items()}
    forward["bare addmm"] = addmm
    found = {
        "forward, no gradients": measure(forward, rule=rule),
        "forward, recorded": measure({name: _recorded(call, cell) for name, cell in cells.items()}, rule=rule),
        "backward": measure(
            {name: Prepared(_recorded(call, cell), call.gradients) for name, cell in cells.items()}, rule=rule
        ),
    }
    if seeds:
        losses = {name: _summed(call, cell) for name, cell in cells.items()}
        rows = {name: Prepared(loss, seeds_backward(call)) for name, loss in losses.items()}
        found["backward of a sum"] = measure(rows, rule=rule)
    return found


def _recorded(call: Call, cell: Cell) -> Callable[[], tuple[Tensor, Tensor]]:
    return lambda: call.run(cell)


def _summed(call: Call, cell: Cell) -> Callable[[], Tensor]:
    return lambda: sum(result.sum() for result in call.run(cell))  # type: ignore[return-value]


def _with_all_gradients(extension: Any) -> SimpleNamespace:
    """The extension with the unneeded gradients computed too."""
    return SimpleNamespace(
        forward=extension.forward, backward=lambda *tensors: extension.backward(*tensors[:-1], [True] * 5)
    )


def keep_memory() -> None:
    """Make glibc keep freed memory, for all rows.

    By default it occasionally returns large tensors to the system, and allocating those of a gradient again takes as
    long as its arithmetic; which row this affects is random.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        trim_threshold, mmap_threshold = -1, -3
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 2**30)


def show(console: Console, title: str, found: dict[str, dict[str, Timing]], baseline: str) -> None:
    """Print a table with the median of each row and direction, and the speedup over the baseline."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for direction in found:
        table.add_column(direction, justify="right")
    for name in dict.fromkeys(name for timings in found.values() for name in timings):
        cells = []
        for timings in found.values():
            if name not in timings:
                cells.append("-")
                continue
            times = timings[baseline].ratio(timings[name]).median
            cells.append(f"{timings[name].median * 1e6:9.1f} µs {times:5.2f} x")
        table.add_row(name, *cells)
    console.print(table)


def lstm_of(features: int, state: int) -> tuple[nn.LSTM, Cell]:
    """PyTorch's own LSTM with one layer, as a cell. It has four gates; the LLTM has three."""
    lstm = nn.LSTM(features, state)

    def run(input: Tensor, _weights: Tensor, _bias: Tensor, h: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        states, (_, last) = lstm(input, (h[None], cell[None]))
        return states, last[0]

    return lstm, run


def time_sequence(seconds: float) -> dict[str, dict[str, Timing]]:
    """128 steps at the tutorial's size."""
    batch, features, state = SIZES[0]
    call = Call.of(batch, features, state, STEPS)
    cells: dict[str, Cell] = {PLAIN: plain_sequence, NATIVE: torch.ops.lltm.sequence.default}
    verify(call, cells, plain_sequence)
    lstm, lstm_cell = lstm_of(features, state)
    parameters = {
        PLAIN: (call.weights, call.bias),
        NATIVE: (call.weights, call.bias),
        "nn.LSTM": tuple(lstm.parameters()),
    }
    rows: dict[str, Cell] = {**cells, "nn.LSTM": lstm_cell}

    def backward(name: str) -> Callable[[Any], object]:
        return lambda results: torch.autograd.grad(results, parameters[name], (call.to_h, call.to_cell))

    def both(name: str) -> Callable[[], object]:
        return lambda: backward(name)(call.run(rows[name]))

    rule = SpreadRule(3 * seconds)
    return {
        "forward, no gradients": measure(
            {name: without_gradients(call, cell) for name, cell in rows.items()}, rule=rule
        ),
        "forward, recorded": measure({name: _recorded(call, cell) for name, cell in rows.items()}, rule=rule),
        "backward": measure({name: Prepared(_recorded(call, rows[name]), backward(name)) for name in rows}, rule=rule),
        "forward and backward": measure({name: both(name) for name in rows}, rule=rule),
    }


def main() -> None:
    """Compare, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, torch.get_num_threads()], help="thread counts")
    parser.add_argument("--seconds", type=float, default=3.0, help="time limit for the rounds of each direction")
    parser.add_argument("--only", default="", help="only tables whose title contains this, such as 'state 128'")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    keep_memory()
    opwright.open(ROOT / "ops" / "lltm")
    extension = opwright.load("lltm_cpp", [str(EXAMPLE / "lltm.cpp")])
    cell_of: Callable[[Any], Cell] = runpy.run_path(str(EXAMPLE / "lltm.py"))["cell_of"]
    composed, as_taught = cell_of(extension), cell_of(_with_all_gradients(extension))
    native: Cell = torch.ops.lltm.cell.default
    console = Console(width=150)
    console.print(*(f"{name}: {fact}" for name, fact in machine_record().facts().items()), sep="; ")
    tables: dict[str, Any] = {}
    for threads in dict.fromkeys(asked.threads):
        with set_torch_threads(threads):
            for size in SIZES:
                title = "batch {}, features {}, state {}".format(*size) + f"; threads {threads}"
                if asked.only not in title:
                    continue
                # Compiled code depends on the sizes and the number of threads.
                torch.compiler.reset()
                compiled = torch.compile(plain_cell, fullgraph=True, dynamic=False)
                cells = {
                    PLAIN: plain_cell,
                    COMPILED: compiled,
                    AS_TAUGHT: as_taught,
                    COMPOSED: composed,
                    NATIVE: native,
                }
                call = Call.of(*size)
                verify(call, cells, plain_cell)
                tables[title] = timed(call, cells, asked.seconds, seeds=size == SIZES[0])
                show(console, title, tables[title], PLAIN)
            title = f"sequence of {STEPS} steps, " + "batch {}, features {}, state {}".format(*SIZES[0])
            title += f"; threads {threads}"
            if asked.only in title:
                tables[title] = time_sequence(asked.seconds)
                show(console, title, tables[title], PLAIN)
    if asked.json:
        raw = {
            title: {
                direction: {name: timing.times for name, timing in rows.items()} for direction, rows in found.items()
            }
            for title, found in tables.items()
        }
        Path(asked.json).write_text(json.dumps(raw) + "\n")


if __name__ == "__main__":
    main()
