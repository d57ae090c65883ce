"""Times the native LLTM on a GPU against PyTorch, and the memory bandwidth that its kernels reach.

    python benchmarks/lltm_cuda.py [--seconds 3] [--json FILE]

One step of the cell at the tutorial's size (batch 16, 32 features, state 128) and at a large one (1024, 512, 2048), in
float32: plain PyTorch; the same with `torch.compile`, also with CUDA graphs; the tutorial's C++ of ATen calls and its
fused kernels (examples/lltm_extension); and the operator of ops/lltm. Forward without gradients and recorded, backward
to the weights and the bias, and both. Then a sequence of 128 steps: a Python loop over the plain cell, `nn.LSTM` of the
same sizes (cuDNN's, with four gates; the LLTM has three), and the operator; with products in float32 and in TF32.

Each is timed twice: with the GPU's clock, and with the system's until the GPU has finished.

Then the two kernels that pass over memory, forward and backward, in float32 and bfloat16: the bytes that they must move
per time, compared with a device-to-device copy in the same process.

Compares every result and gradient with plain PyTorch's before timing. Without a GPU, the library is only compiled for
one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import runpy
import statistics
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile

import opwright
from opwright.bencher.machine import machine_record
from opwright.bencher.rows import Prepared, Repeated
from opwright.bencher.speeds import copied_per_second
from opwright.bencher.stopping import SpreadRule
from opwright.bencher.timer import Timing, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "ops" / "lltm"
EXAMPLE = ROOT / "examples" / "lltm_extension"
SIZES = [(16, 32, 128), (1024, 512, 2048)]
STEPS = 128
SEQUENCES = [(16, 32, 128), (64, 512, 512)]
# Too large for any cache: a matrix of the state's size is 64 MiB in float32.
PASSES = (8192, 256, 2048)
PLAIN, COMPILED, GRAPHED, NATIVE = "plain PyTorch", "torch.compile", "torch.compile, CUDA graphs", "ops/lltm"
COMPOSED, FUSED, LSTM = "composed C++", "fused CUDA", "nn.LSTM"
DIRECTIONS = ("forward", "forward, recorded", "backward", "forward and backward")


def call_on_gpu(on_cpu: SimpleNamespace, *size: int) -> Any:
    """The tensors of one call, on the GPU."""
    tensors = vars(on_cpu.Call.of(*size)).items()
    return on_cpu.Call(**{name: x.detach().cuda().requires_grad_(x.requires_grad) for name, x in tensors})


def rows_of(call: Any, cells: dict[str, Any], direction: str, lstm: torch.nn.LSTM | None = None) -> dict[str, Repeated]:
    """The rows of a direction, by the names of the implementations.

    Args:
        call: the tensors.
        cells: the implementations.
        direction: one of `DIRECTIONS`.
        lstm: the module whose parameters are trained in the row `LSTM`.
    """
    grads = (call.to_h, call.to_cell)

    def recorded(name: str) -> Any:
        if name == GRAPHED:
            torch.compiler.cudagraph_mark_step_begin()
        return call.run(cells[name])

    def backward(name: str, results: Any) -> object:
        trained = list(lstm.parameters()) if lstm is not None and name == LSTM else [call.weights, call.bias]
        return torch.autograd.grad(results, trained, grads)

    def both(name: str) -> object:
        return backward(name, recorded(name))

    if direction == "forward":
        return {name: torch.no_grad()(partial(recorded, name)) for name in cells}
    # The next call of a CUDA graph overwrites its results, so a backward cannot follow several forwards.
    several = [name for name in cells if name != GRAPHED]
    if direction == "forward, recorded":
        return {name: partial(recorded, name) for name in several}
    if direction == "backward":
        return {name: Prepared(partial(recorded, name), partial(backward, name)) for name in several}
    return {name: partial(both, name) for name in cells}


def until_done(row: Repeated) -> Repeated:
    """The same, followed by a wait for the GPU."""
    if isinstance(row, Prepared):
        return Prepared(_and_done(row.before), _and_done(row.call))
    return _and_done(row)


def _and_done(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(*given: Any) -> Any:
        result = call(*given)
        torch.cuda.synchronize()
        return result

    return run


def timed(title: str, rows: dict[str, Repeated], seconds: float) -> dict[str, dict[str, Timing]]:
    """Time the rows with each clock; returns the times by the title of each line of the table."""
    waited = {name: until_done(row) for name, row in rows.items()}
    return {
        f"{title}, GPU": measure(rows, rule=SpreadRule(seconds), device="cuda"),
        f"{title}, wall": measure(waited, rule=SpreadRule(seconds)),
    }


def steps(on_cpu: SimpleNamespace, extensions: dict[str, Any], seconds: float) -> dict[str, dict[str, Timing]]:
    """One step at each size, in each direction, with each clock."""
    found: dict[str, dict[str, Timing]] = {}
    for size in SIZES:
        torch.compiler.reset()
        cells = {
            PLAIN: on_cpu.plain_cell,
            COMPILED: torch.compile(on_cpu.plain_cell, fullgraph=True, dynamic=False),
            GRAPHED: torch.compile(on_cpu.plain_cell, fullgraph=True, dynamic=False, mode="reduce-overhead"),
            **extensions,
            NATIVE: torch.ops.lltm.cell.default,
        }
        call = call_on_gpu(on_cpu, *size)
        on_cpu.verify(call, cells, on_cpu.plain_cell)
        for direction in DIRECTIONS:
            title = "B {}, I {}, H {}: ".format(*size) + direction
            found |= timed(title, rows_of(call, cells, direction), seconds)
    return found


def sequences(on_cpu: SimpleNamespace, seconds: float) -> dict[str, dict[str, Timing]]:
    """A sequence of each size, in each direction, with each clock and with both kinds of products."""
    found: dict[str, dict[str, Timing]] = {}
    for size, precision in itertools.product(SEQUENCES, ("highest", "high")):
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = precision == "high"
        call = call_on_gpu(on_cpu, *size, STEPS)
        cells = {PLAIN: on_cpu.plain_sequence, NATIVE: torch.ops.lltm.sequence.default}
        on_cpu.verify(call, cells, on_cpu.plain_sequence)
        lstm, cell = on_cpu.lstm_of(*size[1:])
        cells[LSTM] = cell
        for direction in DIRECTIONS:
            title = f"T {STEPS}, " + "B {}, I {}, H {}".format(*size)
            title += f", {'TF32' if precision == 'high' else 'float32'}: {direction}"
            found |= timed(title, rows_of(call, cells, direction, lstm.cuda()), seconds)
    torch.set_float32_matmul_precision("highest")
    return found


def kernel_seconds(name: str, call: Callable[[], object], repeats: int = 20) -> float:
    """The median time of a kernel of ops/lltm within a call."""
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
    times = [event.device_time_total for event in seen.events() or () if f"lltm::gpu::{name}<" in event.name]
    if not times:
        sys.exit(f"the profiler recorded no kernel {name}: it requires CUPTI, and the permission to use it")
    return float(statistics.median(times)) / 1e6


def passes(on_cpu: SimpleNamespace, backward: Callable[..., Any]) -> dict[str, float]:
    """The bytes per second of the two kernels, which must read and write each number once.

    Args:
        on_cpu: benchmarks/lltm.py.
        backward: the reference of `cell_with_gates_backward`.
    """
    found = {}
    batch, _, state = PASSES
    for dtype, (rtol, atol) in {torch.float32: (1e-4, 1e-3), torch.bfloat16: (2e-2, 1e-1)}.items():
        call = call_on_gpu(on_cpu, *PASSES)
        *arguments, to_h, to_cell = (tensor.detach().to(dtype) for tensor in vars(call).values())
        input, weights, _, h, _ = arguments
        new_h, new_cell, gates = torch.ops.lltm.cell_with_gates(*arguments)
        given = (to_h, to_cell, None, input, weights, h, new_cell, gates, [False, False, True, False, True])
        expected = (*on_cpu.plain_cell(*arguments), *backward(*given))
        results = (new_h, new_cell, *torch.ops.lltm.cell_with_gates_backward(*given))
        for got, right in zip(results, expected, strict=True):
            if right is not None:
                torch.testing.assert_close(got, right, rtol=rtol, atol=atol * max(1.0, float(right.abs().max())))
        bytes_of_matrix = batch * state * dtype.itemsize
        calls = {
            ("forward", 9): partial(torch.ops.lltm.cell_with_gates, *arguments),
            ("backward", 10): partial(torch.ops.lltm.cell_with_gates_backward, *given),
        }
        for (name, matrices), run in calls.items():
            label = f"kernel {name}, {str(dtype).removeprefix('torch.')}"
            found[label] = matrices * bytes_of_matrix / kernel_seconds(name, run)
    return found


def table_of(times: dict[str, dict[str, Timing]], names: Sequence[str]) -> Table:
    """Medians in microseconds, and the speedup over plain PyTorch."""
    table = Table(title=torch.cuda.get_device_name(), title_justify="left")
    for column in ("", *names):
        table.add_column(column, justify="right" if column else "left")
    for title, timings in times.items():
        cells = [
            f"{timings[name].median * 1e6:.1f} µs {timings[PLAIN].ratio(timings[name]).median:.2f} x"
            if name in timings
            else "-"
            for name in names
        ]
        table.add_row(title, *cells)
    return table


def main() -> None:
    """Compile; with a GPU, also compare, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="time limit for the rounds of each row of the table")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        opwright.build(FOLDER, cuda=True)
        print("CUDA: compiled, not run")
        return
    loaded = opwright.open(FOLDER)
    on_cpu = SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks" / "lltm.py")))
    cell_of = runpy.run_path(str(EXAMPLE / "lltm.py"))["cell_of"]
    extensions = {
        COMPOSED: cell_of(opwright.load("lltm_cpp", [EXAMPLE / "lltm.cpp"])),
        FUSED: cell_of(opwright.load("lltm_cuda", [EXAMPLE / "lltm_cuda.cpp", EXAMPLE / "lltm_cuda_kernel.cu"])),
    }
    console = Console(width=170)
    console.print(*(f"{name}: {fact}" for name, fact in machine_record().facts().items()), sep="; ")
    one_step = steps(on_cpu, extensions, asked.seconds)
    console.print(table_of(one_step, (PLAIN, COMPILED, GRAPHED, *extensions, NATIVE)))
    all_steps = sequences(on_cpu, asked.seconds)
    console.print(table_of(all_steps, (PLAIN, LSTM, NATIVE)))
    speeds = passes(on_cpu, loaded.library.ops["cell_with_gates_backward"].reference)
    copy = copied_per_second()
    console.print(f"copy from device to device: {copy / 1e9:.0f} GB/s")
    for label, speed in speeds.items():
        console.print(f"{label}: {speed / 1e9:.0f} GB/s, {100 * speed / copy:.0f} % of the copy")
    if asked.json:
        raw = {
            title: {name: timing.times for name, timing in rows.items()}
            for title, rows in (one_step | all_steps).items()
        }
        Path(asked.json).write_text(json.dumps({"seconds": raw, "bytes_per_second": {"copy": copy, **speeds}}) + "\n")


if __name__ == "__main__":
    main()
