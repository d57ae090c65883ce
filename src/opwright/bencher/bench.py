"""Times an operator library: every operator at every size, next to its reference and its floor."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils.benchmark import set_torch_threads

from opwright.bencher.cells import cells_at
from opwright.bencher.clocks import seconds_now
from opwright.bencher.draws import Draws
from opwright.bencher.gauge import Gauge
from opwright.bencher.implementations import implementations_of
from opwright.bencher.machine import machine_record
from opwright.bencher.notes import notes_of
from opwright.bencher.replaced import check_replaced
from opwright.bencher.result import DIRECTIONS, Cell, Direction, Report
from opwright.bencher.stopping import RoundsRule, SpreadRule
from opwright.bencher.subject import Subject
from opwright.builder.library import build_library
from opwright.errors import SpecError, ToolchainError
from opwright.loader.open import open_library
from opwright.spec import Library, Make, library_at
from opwright.spec.select import select_names
from opwright.toolchain.devices import DEVICES, devices_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from opwright.bencher.cells import Watcher
    from opwright.bencher.stopping import StoppingRule
    from opwright.spec import Op

Number = TypeVar("Number", int, float)


class _NullWatcher:
    """A watcher that does nothing."""

    def start(self, sizes: int | None) -> None: ...
    def begin(self, cell: str) -> None: ...
    def round(self) -> None: ...
    def end(self, cell: Cell) -> None: ...
    def end_size(self) -> None: ...


def bench(
    library: Library | str | Path,
    *,
    ops: Sequence[str] = (),
    devices: Sequence[str] = (),
    threads: Sequence[int] = (),
    dtype: str | torch.dtype = "float32",
    sizes: Sequence[str] = (),
    directions: Sequence[str] = (),
    seconds: float = 2.0,
    rounds: int | None = None,
    compiled: bool = True,
    seed: int = 0,
    verbose: bool = False,
    progress: Watcher | None = None,
) -> Report:
    """Time the operators of a library, their references (eager and compiled) and their floors.

    An implementation with wrong results or gradients is not timed. Each round times all rows of a cell, in random
    order, and each call has different contents. Some timed calls, chosen at random, are verified too.
    On a GPU, a row is also timed with a flushed L2 cache, and its rates are compared with those of a large copy and of
    a large matrix product.

    Args:
        library: the folder of an op.py, the file, or the library that it describes.
        ops: the names of the operators; by default all except those that other operators call, such as a backward.
        devices: `cpu` and `cuda`; by default the CPU, and a GPU if there is one and the library has CUDA sources.
        threads: the numbers of CPU threads, timed in turn; PyTorch's default if empty.
        dtype: the dtype of floating-point tensors for which the sweep does not specify one.
        sizes: time only the sizes whose label contains one of these; all by default.
        directions: `forward`, `recorded` (forward while autograd records it), `backward`, `both`; all by default.
        seconds: the time limit for the rounds of a cell; they stop earlier if the medians are stable.
        rounds: run this number of rounds per cell instead.
        compiled: also time the references under `torch.compile`, on a GPU also with CUDA graphs.
        seed: the seed of the random inputs.
        verbose: print each build step.
        progress: receives the progress of the benchmark.

    Returns:
        The report; `report.passed` is whether all requested rows gave correct results.

    Raises:
        SpecError: op.py does not describe a library, or replaces functions that the benchmark relies on, or an
            argument is invalid.
        ToolchainError: a GPU is requested and none is available, or a compiler is missing.
        OpwrightError: the library does not build or does not load.

    Example:
        report = opwright.bench("ops/mine", directions=["forward"])
        [cell.ratio("native").median for cell in report.cells]
    """
    started = seconds_now()
    described = library if isinstance(library, Library) else library_at(library)
    plan = _Plan(
        ops=_ops(described, ops),
        devices=_devices(described, devices),
        threads=_positive(threads, "threads") or [torch.get_num_threads()],
        dtype=_dtype(dtype),
        labels=list(sizes),
        directions=select_names(directions, DIRECTIONS, "direction"),
        rule=_rule(seconds, rounds),
        compiled=compiled,
        seed=seed,
    )
    artefact = build_library(described, verbose=verbose) if described.sources else None
    open_library(described, built=artefact.path if artefact else None)
    check_replaced(str(described.root))
    cells = tuple(_cells(plan, progress or _NullWatcher()))
    check_replaced(str(described.root))
    left_out = [] if ops else [op for op in described.ops.values() if is_part_of_another(op)]
    return Report(
        namespace=described.namespace,
        path=str(described.root),
        machine=machine_record(),
        dtype=str(plan.dtype).removeprefix("torch."),
        seed=seed,
        rule=str(plan.rule),
        cells=cells,
        notes=tuple(notes_of(described, plan.ops, left_out, cells, with_cuda=bool(artefact and artefact.plan.cuda))),
        seconds=round(seconds_now() - started, 3),
    )


@dataclass(frozen=True)
class _Plan:
    """What to time and how: the checked arguments of `bench`."""

    ops: list[Op]
    devices: list[str]
    threads: list[int]
    dtype: torch.dtype
    labels: list[str]
    directions: list[Direction]
    rule: StoppingRule
    compiled: bool
    seed: int

    def configurations(self) -> Iterator[tuple[Op, str, int]]:
        """Every combination of operator, device and number of threads; on a GPU, only the first number of threads."""
        for op in self.ops:
            for device in self.devices:
                for threads in self.threads if device == "cpu" else self.threads[:1]:
                    yield op, device, threads

    def wants(self, label: str) -> bool:
        """Whether to time the size with this label."""
        return not self.labels or any(part in label for part in self.labels)

    def make(self, device: str, seed: int | None = None) -> Make:
        """The `Make` that creates the arguments on `device`, with the seed of the benchmark or another one."""
        return Make(seed=self.seed if seed is None else seed, dtype=self.dtype, device=device)


def _cells(plan: _Plan, watcher: Watcher) -> Iterator[Cell]:
    """Time every cell of the plan.

    Raises:
        SpecError: no size has a requested label.
    """
    watcher.start(_count(plan))
    labels: dict[str, None] = {}
    gauge = Gauge() if "cuda" in plan.devices else None
    for op, device, threads in plan.configurations():
        with set_torch_threads(threads):
            for number, size in enumerate(op.sizes(plan.make(device))):
                labels[size.label] = None
                if plan.wants(size.label):
                    subject = Subject(op, size, device, plan.seed)
                    draws = Draws(op, number, functools.partial(plan.make, device))
                    found = implementations_of(subject, compiled=plan.compiled)
                    compared = gauge if device == "cuda" else None
                    yield from cells_at(subject, draws, found, plan.directions, plan.rule, watcher, compared)
                    watcher.end_size()
    if not any(map(plan.wants, labels)):
        requested = " or ".join(map(repr, plan.labels))
        msg = f"no size has {requested} in its label: expected a part of one of {', '.join(labels)}"
        raise SpecError(msg)


def _count(plan: _Plan) -> int | None:
    """The number of sizes; None if unknown, as for a sweep that does not support the meta device."""
    try:
        return sum(plan.wants(size.label) for op, _, _ in plan.configurations() for size in op.sizes(plan.make("meta")))
    except Exception:
        return None


def is_part_of_another(op: Op) -> bool:
    """Whether the operator is the backward or the training form of another one, and is timed as part of it."""
    return any(
        (other.gradient is not None and other.gradient.op is op) or other.training_form is op
        for other in op.library.ops.values()
    )


def _ops(library: Library, requested: Sequence[str]) -> list[Op]:
    if not library.ops:
        msg = f"library {library.namespace!r} describes no operators: decorate a function in op.py with @library.op"
        raise SpecError(msg)
    names = select_names(requested, list(library.ops), "operator", f"{library.namespace}::")
    return [library.ops[name] for name in names if requested or not is_part_of_another(library.ops[name])]


def _devices(library: Library, requested: Sequence[str]) -> list[str]:
    devices = select_names(requested, DEVICES, "device") if requested else devices_of(library)
    if "cuda" in devices and not torch.cuda.is_available():
        why = "it is a CPU build" if torch.version.cuda is None else "the driver reports none"
        msg = f"this PyTorch has no GPU to use: {why}. Leave out --device cuda, or bench on a machine with a GPU"
        raise ToolchainError(msg)
    return devices


def _dtype(requested: str | torch.dtype) -> torch.dtype:
    dtype: Any = getattr(torch, requested, None) if isinstance(requested, str) else requested
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        msg = f"{requested!r} is not a floating-point dtype: expected float32, bfloat16, float16 or float64"
        raise SpecError(msg)
    return dtype


def _rule(seconds: float, rounds: int | None) -> StoppingRule:
    if rounds is not None:
        return RoundsRule(*_positive([rounds], "rounds"))
    return SpreadRule(seconds=_positive([seconds], "seconds")[0])


def _positive(numbers: Sequence[Number], what: str) -> list[Number]:
    for number in numbers:
        if number <= 0:
            msg = f"{what} must be positive, got {number}"
            raise SpecError(msg)
    return list(numbers)
