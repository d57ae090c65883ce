"""What a reader of a bench has to know beside the times."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opwright.bencher.result import Cell
    from opwright.spec import Library, Op


def notes_of(
    library: Library, ops: Sequence[Op], left_out: Sequence[Op], cells: Sequence[Cell], *, with_cuda: bool
) -> Iterator[str]:
    """The notes of a bench.

    Args:
        library: what was benched.
        ops: the operators that were timed.
        left_out: those that were not, since they are a part of another one.
        cells: what was found.
        with_cuda: whether its CUDA sources were built.
    """
    for op in ops:
        if not op.has_sweep:
            yield f"{op.name} has no sweep: its samples serve as sizes. @{op.name}.sweep in op.py says which to take"
    for name, device in dict.fromkeys((cell.op, cell.device) for cell in cells):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, device.upper()):
            short = name.removeprefix(f"{library.namespace}::")
            yield f"native: {short} has no native kernel on {device}; it runs its reference, behind the dispatcher"
    if left_out:
        names = ", ".join(op.name for op in left_out)
        yield f"not timed by themselves, since other operators call them: {names}; --op asks for them"
    yield from _cuda(library, cells, with_cuda=with_cuda)
    yield from _floors(ops, cells)
    yield from _ends(cells)


def _cuda(library: Library, cells: Sequence[Cell], *, with_cuda: bool) -> Iterator[str]:
    sources = [source.name for source in library.sources if source.suffix == ".cu"]
    if sources and not torch.cuda.is_available() and all(cell.device == "cpu" for cell in cells):
        became = "compiled, not run" if with_cuda else "neither compiled nor run"
        yield f"CUDA: there is no GPU here; {', '.join(sources)}: {became}"


def _floors(ops: Sequence[Op], cells: Sequence[Cell]) -> Iterator[str]:
    for op in ops:
        if op.floors:
            yield f"floor of {op.name}: {', '.join(f'{floor.what} ({part})' for part, floor in op.floors.items())}"
    if any("a copy that moves" in cell.floor for cell in cells):
        yield (
            "floor, where op.py names none: PyTorch's copy of as many bytes as arguments, results and gradients have, "
            "half of them read and half written, at that very size: where they fit into a cache, within it"
        )


def _ends(cells: Sequence[Cell]) -> Iterator[str]:
    for ended, count in Counter(cell.ended for cell in cells if cell.ended).items():
        yield f"the rounds ended in {count} of {len(cells)} cells: {ended}"
