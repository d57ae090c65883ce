"""Times the native LLTM in bfloat16 against float32, and compares its errors with those of plain PyTorch.

    python benchmarks/lltm_bfloat16.py [--threads 1 2] [--seconds 3] [--json FILE] [--only TEXT]

One step of the cell at the sizes of benchmarks/lltm.py, then a sequence of 128 steps at the smallest one: the operator
of ops/lltm in float32 and in bfloat16, and plain PyTorch in bfloat16. The gradients are those of the weights and the
bias. All rows of a table are timed in turn in each round. Prints medians, and the medians of the rounds' ratios.

The first table compares the results and gradients in bfloat16 with those in float64 of the same arguments: the root
mean square of the difference, relative to that of the exact ones. Times nothing if an error of the operator is more
than twice that of plain PyTorch.

OPWRIGHT_SIMD=avx512 disables the processor's bfloat16 products, OPWRIGHT_SIMD=avx2 AVX-512 as well.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.benchmark import set_torch_threads

import opwright
from opwright.bencher.machine import machine_record
from opwright.bencher.rows import Prepared, Repeated
from opwright.bencher.stopping import SpreadRule
from opwright.bencher.timer import Timing, measure

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
FLOAT32, BFLOAT16, PLAIN = "ops/lltm, float32", "ops/lltm, bfloat16", "plain PyTorch, bfloat16"
RESULTS = ("new state", "new cell", "gradient of the weights", "gradient of the bias")


def call_in(call: Any, dtype: torch.dtype) -> Any:
    """The same call with another dtype."""
    tensors = vars(call).items()
    return type(call)(**{name: x.detach().to(dtype).requires_grad_(x.requires_grad) for name, x in tensors})


def results_of(call: Any, cell: Callable[..., Any]) -> list[torch.Tensor]:
    """The results, followed by the gradients."""
    results = call.run(cell)
    return [tensor.detach() for tensor in (*results, *call.gradients(results))]


def errors(call: Any, native: Callable[..., Any], plain: Callable[..., Any]) -> dict[str, tuple[float, float]]:
    """The relative error in bfloat16 of the operator and of plain PyTorch, for each result."""
    narrow = call_in(call, torch.bfloat16)
    exact = results_of(call_in(narrow, torch.float64), plain)

    def relative(cell: Callable[..., Any]) -> list[float]:
        pairs = zip(results_of(narrow, cell), exact, strict=True)
        return [float((got - right).norm() / right.norm()) for got, right in pairs]

    return dict(zip(RESULTS, zip(relative(native), relative(plain), strict=True), strict=True))


def timed(call: Any, cells: dict[str, Callable[..., Any]], seconds: float) -> dict[str, dict[str, Timing]]:
    """All rows of all directions."""
    narrow = call_in(call, torch.bfloat16)
    calls = {name: call if name == FLOAT32 else narrow for name in cells}

    def recorded(name: str) -> Callable[[], Any]:
        return lambda: calls[name].run(cells[name])

    def backward(name: str) -> Repeated:
        return Prepared(recorded(name), calls[name].gradients)

    def both(name: str) -> Callable[[], object]:
        return lambda: calls[name].gradients(calls[name].run(cells[name]))

    rule = SpreadRule(seconds)
    return {
        "forward, no gradients": measure({name: torch.no_grad()(recorded(name)) for name in cells}, rule=rule),
        "forward, recorded": measure({name: recorded(name) for name in cells}, rule=rule),
        "backward": measure({name: backward(name) for name in cells}, rule=rule),
        "forward and backward": measure({name: both(name) for name in cells}, rule=rule),
    }


def show_errors(console: Console, title: str, found: dict[str, tuple[float, float]]) -> None:
    """Print the errors, and exit if those of the operator are too large."""
    table = Table("", "ops/lltm", "plain PyTorch", title=title, title_justify="left")
    for name, both in found.items():
        table.add_row(name, *(f"{error:.1e}" for error in both))
    console.print(table)
    for name, (own, plain) in found.items():
        if not own <= 2 * plain:
            sys.exit(f"{title}: the {name} is off by {own:.1e}, that of plain PyTorch by {plain:.1e}")


def main() -> None:
    """Compare, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, torch.get_num_threads()], help="thread counts")
    parser.add_argument("--seconds", type=float, default=3.0, help="time limit for the rounds of each direction")
    parser.add_argument("--only", default="", help="only tables whose title contains this, such as 'state 128'")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    shared = SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks" / "lltm.py")))
    shared.keep_memory()
    opwright.open(ROOT / "ops" / "lltm")
    ops = torch.ops.lltm
    console = Console(width=150)
    console.print(*(f"{name}: {fact}" for name, fact in machine_record().facts().items()), sep="; ")
    kinds: list[tuple[tuple[int, ...], tuple[int, ...], Any, Any]]
    kinds = [((), size, ops.cell.default, shared.plain_cell) for size in shared.SIZES]
    kinds.append(((shared.STEPS,), shared.SIZES[0], ops.sequence.default, shared.plain_sequence))
    tables: dict[str, Any] = {}
    for threads in dict.fromkeys(asked.threads):
        with set_torch_threads(threads):
            for steps, size, native, plain in kinds:
                title = "".join(f"{count} steps, " for count in steps)
                title += "batch {}, features {}, state {}".format(*size) + f"; threads {threads}"
                if asked.only not in title:
                    continue
                torch.manual_seed(0)
                call = shared.Call.of(*size, *steps)
                show_errors(console, f"errors, {title}", errors(call, native, plain))
                tables[title] = timed(call, {FLOAT32: native, BFLOAT16: native, PLAIN: plain}, asked.seconds)
                shared.show(console, title, tables[title], FLOAT32)
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
