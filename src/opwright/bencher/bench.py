"""Times an operator library: every operator at every size, beside its reference and its floor."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils.benchmark import set_torch_threads

from opwright.bencher.cells import cells_at
from opwright.bencher.implementations import ways_of
from opwright.bencher.machine import machine_record
from opwright.bencher.notes import notes_of
from opwright.bencher.result import DIRECTIONS, Cell, Direction, Report
from opwright.bencher.stopping import RoundsRule, SpreadRule
from opwright.bencher.subject import Subject
from opwright.builder.library import build_library
from opwright.errors import SpecError, ToolchainError
from opwright.loader.open import open_library
from opwright.spec import Library, Make, library_at
from opwright.spec.select import chosen
from opwright.toolchain.devices import DEVICES, devices_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from opwright.bencher.cells import Watcher
    from opwright.bencher.stopping import StoppingRule
    from opwright.spec import Op

Number = TypeVar("Number", int, float)


class _Nobody:
    """A watcher that looks away."""

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
    """Time the operators of a library beside their references, eager and compiled, and beside their floors.

    What gives wrong results, or wrong gradients, is not timed. All rows of a cell are timed in turn, round after round.

    Args:
        library: the folder of an op.py, the file, or what it describes.
        ops: the names of the operators; by default all but those that are a part of another one, as a backward is.
        devices: `cpu` and `cuda`; by default the CPU, and the GPU where there is one and the library has CUDA sources.
        threads: the numbers of threads to use on the CPU, one after the other; PyTorch's own by default.
        dtype: the dtype of floating tensors whose author names none.
        sizes: parts of the labels of the sizes to time; all by default.
        directions: `forward`, `recorded` (forward while it is recorded for gradients), `backward`, `both`.
        seconds: the time that the rounds of a cell may take, where its medians are not steady before.
        rounds: so many rounds for each cell instead.
        compiled: time what `torch.compile` makes of the references too.
        seed: what the random numbers are made from.
        verbose: print each step of the build.
        progress: is told how far the bench is.

    Returns:
        The report; `report.passed` says whether all that was to be timed was right.

    Raises:
        SpecError: op.py does not describe a library, or a name is unknown.
        ToolchainError: a GPU is asked for, and there is none; or a compiler is missing.
        OpwrightError: the library does not build, or does not load.

    Example:
        report = opwright.bench("ops/mine", directions=["forward"])
        [cell.ratio("native").median for cell in report.cells]
    """
    started = time.perf_counter()
    described = library if isinstance(library, Library) else library_at(library)
    plan = _Plan(
        ops=_ops(described, ops),
        devices=_devices(described, devices),
        threads=_positive(threads, "threads") or [torch.get_num_threads()],
        dtype=_dtype(dtype),
        labels=list(sizes),
        directions=chosen(directions, DIRECTIONS, "direction"),
        rule=_rule(seconds, rounds),
        compiled=compiled,
        seed=seed,
    )
    artefact = build_library(described, verbose=verbose) if described.sources else None
    open_library(described, built=artefact.path if artefact else None)
    cells = tuple(_cells(plan, progress or _Nobody()))
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
        seconds=round(time.perf_counter() - started, 3),
    )


@dataclass(frozen=True)
class _Plan:
    """What is to be timed, and how; as the arguments of `bench`."""

    ops: list[Op]
    devices: list[str]
    threads: list[int]
    dtype: torch.dtype
    labels: list[str]
    directions: list[Direction]
    rule: StoppingRule
    compiled: bool
    seed: int

    def places(self) -> Iterator[tuple[Op, str, int]]:
        """Every operator, device and number of threads; on the GPU, threads change nothing."""
        for op in self.ops:
            for device in self.devices:
                for threads in self.threads if device == "cpu" else self.threads[:1]:
                    yield op, device, threads

    def wants(self, label: str) -> bool:
        """Whether the size of that label is to be timed."""
        return not self.labels or any(part in label for part in self.labels)

    def make(self, device: str) -> Make:
        """What makes the arguments."""
        return Make(seed=self.seed, dtype=self.dtype, device=device)


def _cells(plan: _Plan, watcher: Watcher) -> Iterator[Cell]:
    """Every cell, timed.

    Raises:
        SpecError: no size has the label that is asked for.
    """
    watcher.start(_count(plan))
    labels: dict[str, None] = {}
    for op, device, threads in plan.places():
        with set_torch_threads(threads):
            for size in op.sizes(plan.make(device)):
                labels[size.label] = None
                if plan.wants(size.label):
                    subject = Subject(op, size, device, plan.seed)
                    yield from cells_at(
                        subject, ways_of(op, compiled=plan.compiled), plan.directions, plan.rule, watcher
                    )
                    watcher.end_size()
    if not any(map(plan.wants, labels)):
        asked = " or ".join(map(repr, plan.labels))
        msg = f"no size has {asked} in its label: there are {', '.join(labels)}"
        raise SpecError(msg)


def _count(plan: _Plan) -> int | None:
    """How many sizes there are. They are made without their numbers, which not every author's sweep can do."""
    try:
        return sum(plan.wants(size.label) for op, _, _ in plan.places() for size in op.sizes(plan.make("meta")))
    except Exception:
        return None


def is_part_of_another(op: Op) -> bool:
    """Whether an operator is called by another one, with which it is timed: its backward, or its training form."""
    return any(
        (other.gradient is not None and other.gradient.op is op) or other.training_form is op
        for other in op.library.ops.values()
    )


def _ops(library: Library, asked: Sequence[str]) -> list[Op]:
    if not library.ops:
        msg = f"library {library.namespace!r} describes no operators: decorate a function in op.py with @library.op"
        raise SpecError(msg)
    names = chosen(asked, list(library.ops), "operator", f"{library.namespace}::")
    return [library.ops[name] for name in names if asked or not is_part_of_another(library.ops[name])]


def _devices(library: Library, asked: Sequence[str]) -> list[str]:
    devices = chosen(asked, DEVICES, "device") if asked else devices_of(library)
    if "cuda" in devices and not torch.cuda.is_available():
        why = "it is a CPU build" if torch.version.cuda is None else "the driver shows none"
        msg = f"no GPU that this PyTorch can use: {why}. Leave out --device cuda, or bench on a machine that has one"
        raise ToolchainError(msg)
    return devices


def _dtype(asked: str | torch.dtype) -> torch.dtype:
    dtype: Any = getattr(torch, asked, None) if isinstance(asked, str) else asked
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        msg = f"{asked!r} is no floating dtype: expected one such as float32, bfloat16, float16 or float64"
        raise SpecError(msg)
    return dtype


def _rule(seconds: float, rounds: int | None) -> StoppingRule:
    if rounds is not None:
        return RoundsRule(*_positive([rounds], "rounds"))
    return SpreadRule(seconds=_positive([seconds], "seconds")[0])


def _positive(given: Sequence[Number], what: str) -> list[Number]:
    for number in given:
        if number <= 0:
            msg = f"{what} must be positive, got {number}"
            raise SpecError(msg)
    return list(given)
