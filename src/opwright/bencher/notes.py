"""The notes of a bench: facts about it that the times do not show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import torch

from opwright.report.format import three_figures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opwright.bencher.result import Cell
    from opwright.spec import Library, Op


def notes_of(
    library: Library, ops: Sequence[Op], skipped: Sequence[Op], cells: Sequence[Cell], *, with_cuda: bool
) -> Iterator[str]:
    """The notes of a bench.

    Args:
        library: the library.
        ops: the operators that were timed.
        skipped: the operators that were not timed separately, because other operators call them.
        cells: the cells of the report.
        with_cuda: whether the library's CUDA sources were built.
    """
    for op in ops:
        if not op.has_sweep:
            yield f"{op.name} has no sweep, so its samples are timed: define @{op.name}.sweep in op.py to choose sizes"
    for name, device in dict.fromkeys((cell.op, cell.device) for cell in cells):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, device.upper()):
            short = name.removeprefix(f"{library.namespace}::")
            yield f"native: {short} has no native kernel on {device}; it runs its reference through the dispatcher"
    if skipped:
        names = ", ".join(op.name for op in skipped)
        yield f"not timed separately, because other operators call them: {names}; --op times them"
    yield from _cuda(library, cells, with_cuda=with_cuda)
    for name, reason in dict.fromkeys((cell.op, cell.contents) for cell in cells if cell.contents):
        short = name.removeprefix(f"{library.namespace}::")
        yield f"all timed calls of {short} at one size had the same contents: {reason}; draw them with make.randn"
    yield from _floors(ops, cells)
    yield from _gpu(library, cells)
    yield from _ends(cells)


def _cuda(library: Library, cells: Sequence[Cell], *, with_cuda: bool) -> Iterator[str]:
    sources = [source.name for source in library.sources if source.suffix == ".cu"]
    if sources and not torch.cuda.is_available() and all(cell.device == "cpu" for cell in cells):
        state = "compiled, not run" if with_cuda else "neither compiled nor run"
        yield f"CUDA: this machine has no GPU; {', '.join(sources)}: {state}"


def _floors(ops: Sequence[Op], cells: Sequence[Cell]) -> Iterator[str]:
    for op in ops:
        if op.floors:
            yield f"floor of {op.name}: {', '.join(f'{floor.what} ({part})' for part, floor in op.floors.items())}"
    if any("a copy that moves" in cell.floor for cell in cells):
        yield (
            "floor, where op.py defines none: a PyTorch copy that moves the number of bytes of the arguments, results "
            "and gradients, half read and half written; sizes that fit into a cache are copied within it"
        )


def _gpu(library: Library, cells: Sequence[Cell]) -> Iterator[str]:
    """Notes on times on a GPU: its clocks, its speeds, and streams that the current stream does not wait for."""
    on_gpu = [(cell, cell.gpu) for cell in cells if cell.gpu]
    late: dict[str, list[str]] = {}
    for cell, _ in on_gpu:
        for row in cell.rows:
            if row.timing and row.timing.is_late:
                name = f"{row.name} of {cell.op.removeprefix(f'{library.namespace}::')}"
                late.setdefault(name, []).append(f"{cell.size} {cell.direction}")
    for name, places in late.items():
        yield (
            f"{name} works on a separate stream, for which the current stream does not wait: {', '.join(places)}. "
            "Its times include all work on the GPU; code that reads its results may read them too early"
        )
    for cell, gpu in on_gpu:
        if gpu.slowed_down and gpu.before and gpu.after:
            short = cell.op.removeprefix(f"{library.namespace}::")
            yield (
                f"the SM clock dropped by more than 10 % while {short} was timed, {cell.size} {cell.direction}: "
                f"before, {gpu.before}; after, {gpu.after}"
            )
    if any(gpu.before is None for _, gpu in on_gpu):
        yield "the clocks of the GPU are unknown: nvidia-smi is not on the PATH, or does not report them"
    for copied in dict.fromkeys(gpu.copied_per_second for _, gpu in on_gpu):
        yield f"a large copy within the GPU's memory moves {three_figures(copied / 1e9)} GB/s, read and written"
    for product, rate in dict.fromkeys((gpu.product, gpu.multiplied_per_second) for _, gpu in on_gpu if gpu.product):
        yield f"a large matrix product (GEMM) reaches {three_figures(rate / 1e12)} TFLOP/s in {product}"


def _ends(cells: Sequence[Cell]) -> Iterator[str]:
    for reason, count in Counter(cell.ended for cell in cells if cell.ended).items():
        yield f"why the rounds stopped in {count} of {len(cells)} cells: {reason}"
