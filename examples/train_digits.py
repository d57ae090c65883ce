"""Trains a classifier of handwritten digits twice, with the reference kernels of ops/lltm and with the native ones.

Each image of scikit-learn's digits is read row by row, as a sequence of 8 steps of 8 pixels. Both trainings start with
the same weights and use the same batches, epoch by epoch in turn. Under torchrun, each process trains on its share of
every batch, and the gradients that DistributedDataParallel averages are compared with those of the whole batch.

Exits with 1 if one of these conditions fails: a test accuracy of 95 %, the same losses with both kernels over the first
100 steps, the same gradients in several processes. Times are only printed.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from digits import Classifier, Digits, batches, load  # type: ignore[import-not-found]  # next to this script
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

EXAMPLES = """examples:
  python examples/train_digits.py
  python examples/train_digits.py --epochs 50 --plot losses.svg --json figures.json
  torchrun --nproc-per-node 2 examples/train_digits.py
"""
BATCH = 64
PICTURES = (".png", ".svg", ".pdf")
HIGHEST_RATE = 0.25
MOMENTUM = 0.9

LEAST_ACCURACY = 0.95
COMPARED_STEPS = 100
LOSS_TOLERANCE = 1e-4  # relative
GRADIENT_TOLERANCE = 1e-5  # relative to the largest gradient


@dataclass(frozen=True)
class Team:
    """The processes that train together; only one, unless torchrun started this."""

    rank: int
    size: int
    device: torch.device

    @classmethod
    def joined(cls) -> Team:
        """The team that the environment describes; waits for all its processes."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        rank, local = (int(os.environ.get(name, "0")) for name in ("RANK", "LOCAL_RANK"))
        if BATCH % size != 0:
            sys.exit(f"a batch of {BATCH} cannot be split equally among {size} processes: use a divisor of it")
        device = torch.device("cpu")
        if torch.cuda.is_available():
            device = torch.device("cuda", local)
            torch.cuda.set_device(device)
        if size > 1:
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        return cls(rank, size, device)

    def share(self, batch: Tensor) -> Tensor:
        """This process's share of a batch."""
        return batch[self.rank :: self.size]

    def mean(self, numbers: Tensor) -> Tensor:
        """The mean over all processes."""
        if self.size > 1:
            dist.all_reduce(numbers)
        return numbers / self.size

    def largest(self, number: float) -> float:
        """The maximum over all processes."""
        numbers = torch.tensor(number, dtype=torch.float64, device=self.device)
        if self.size > 1:
            dist.all_reduce(numbers, dist.ReduceOp.MAX)
        return numbers.item()


@dataclass
class Training:
    """The training of one model: its losses by step, and the duration of each epoch in seconds."""

    team: Team
    model: Classifier
    steps: int
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    gradient_difference: float | None = None

    def __post_init__(self) -> None:
        self.model.to(self.team.device)
        self._called: nn.Module = self.model
        if self.team.size > 1:
            self._called = DistributedDataParallel(self.model)
        self._optimizer = torch.optim.SGD(self._called.parameters(), lr=HIGHEST_RATE, momentum=MOMENTUM)
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(self._optimizer, HIGHEST_RATE, total_steps=self.steps)

    def epoch(self, digits: Digits, order: list[Tensor]) -> None:
        """Train on each batch once."""
        losses = []
        started = time.perf_counter()
        for batch in order:
            self._optimizer.zero_grad()
            losses.append(self._backward(self._called, digits, self.team.share(batch)))
            self._optimizer.step()
            self._schedule.step()
        if self.team.device.type == "cuda":
            torch.cuda.synchronize()
        self.seconds.append(time.perf_counter() - started)
        self.losses += self.team.mean(torch.stack(losses)).tolist()

    def compare_gradients(self, digits: Digits, batch: Tensor) -> None:
        """Compare this team's gradients of a batch with those of one process on the whole batch."""
        alone = copy.deepcopy(self.model)
        self._backward(self._called, digits, self.team.share(batch))
        self._backward(alone, digits, batch)
        pairs = [
            (ours.grad, theirs.grad) for ours, theirs in zip(self.model.parameters(), alone.parameters(), strict=True)
        ]
        difference = max(float((ours - theirs).abs().max()) for ours, theirs in pairs)
        scale = max(float(theirs.abs().max()) for _, theirs in pairs)
        self.gradient_difference = self.team.largest(difference / scale)
        self._optimizer.zero_grad()

    def accuracy(self, digits: Digits) -> float:
        """The accuracy on the digits, from 0 to 1."""
        with torch.no_grad():
            return float((self.model(digits.images).argmax(dim=1) == digits.labels).float().mean())

    @staticmethod
    def _backward(model: nn.Module, digits: Digits, batch: Tensor) -> Tensor:
        loss = functional.cross_entropy(model(digits.images[batch]), digits.labels[batch])
        loss.backward()
        return loss.detach()


@dataclass(frozen=True)
class Figures:
    """The results, for the table and as JSON."""

    device: str
    processes: int
    accuracy: dict[str, float]
    seconds_per_epoch: dict[str, float]
    ratio: float
    compared_steps: int
    loss_difference: float
    gradient_difference: dict[str, float | None]
    losses: dict[str, list[float]]

    @classmethod
    def of(cls, trainings: dict[str, Training], tested_on: Digits) -> Figures:
        """The results of finished trainings."""
        reference, native = trainings["reference"], trainings["native"]
        compared = list(zip(reference.losses, native.losses, strict=True))[:COMPARED_STEPS]
        return cls(
            device=reference.team.device.type,
            processes=reference.team.size,
            accuracy={name: training.accuracy(tested_on) for name, training in trainings.items()},
            seconds_per_epoch={name: statistics.median(training.seconds) for name, training in trainings.items()},
            ratio=statistics.median(r / n for r, n in zip(reference.seconds, native.seconds, strict=True)),
            compared_steps=len(compared),
            loss_difference=max(abs(r - n) / abs(r) for r, n in compared),
            gradient_difference={name: training.gradient_difference for name, training in trainings.items()},
            losses={name: training.losses for name, training in trainings.items()},
        )

    def failures(self) -> list[str]:
        """The conditions that fail."""
        found = [
            f"the test accuracy by {name} kernels is {percent(accuracy)}, expected {percent(LEAST_ACCURACY)} or more"
            for name, accuracy in self.accuracy.items()
            if not accuracy >= LEAST_ACCURACY
        ]
        if not self.loss_difference <= LOSS_TOLERANCE:
            found.append(
                f"the losses by reference and native kernels have a relative difference of {self.loss_difference:.1e}, "
                f"expected {LOSS_TOLERANCE:g} or less"
            )
        found += [
            f"the gradients of {self.processes} processes by {name} kernels differ by {difference:.1e} from those "
            f"of one, expected {GRADIENT_TOLERANCE:g} or less"
            for name, difference in self.gradient_difference.items()
            if difference is not None and not difference <= GRADIENT_TOLERANCE
        ]
        return found


def train(team: Team, epochs: int) -> Figures:
    """Train with both kinds of kernels, in turn."""
    learnt_from, tested_on = (digits.to(team.device) for digits in load())
    orders = [batches(len(learnt_from), BATCH, epoch) for epoch in range(epochs)]
    trainings = {}
    for name in ("reference", "native"):
        torch.manual_seed(0)
        trainings[name] = Training(team, Classifier(native=name == "native"), sum(map(len, orders)))
        if team.size > 1:
            trainings[name].compare_gradients(learnt_from, orders[0][0])
    columns = ("epoch", MofNCompleteColumn(), BarColumn(), TimeElapsedColumn(), "{task.description}")
    with Progress(*columns, console=Console(stderr=True), disable=team.rank > 0) as progress:
        task = progress.add_task("", total=epochs)
        for epoch, order in enumerate(orders):
            # They alternate in going first, so that other load on the machine affects both.
            for name in sorted(trainings, reverse=epoch % 2 == 0):
                trainings[name].epoch(learnt_from, order)
            losses = ", ".join(f"{name} {training.losses[-1]:.4f}" for name, training in trainings.items())
            progress.update(task, advance=1, description=f"loss: {losses}")
    return Figures.of(trainings, tested_on)


def table_of(figures: Figures) -> Table:
    """The table of results."""
    processes = "one process" if figures.processes == 1 else f"{figures.processes} processes"
    table = Table(title=f"Handwritten digits, row by row: {processes} on {figures.device}")
    table.add_column("")
    for name in figures.accuracy:
        table.add_column(name, justify="right")
    table.add_row("test accuracy", *map(percent, figures.accuracy.values()))
    table.add_row("an epoch (median)", *(f"{seconds * 1e3:.1f} ms" for seconds in figures.seconds_per_epoch.values()))
    table.add_row("reference / native (median of the epochs)", "", f"{figures.ratio:.2f}")
    differs = f"losses differ, over the first {figures.compared_steps} steps, by at most"
    table.add_row(differs, "", f"{figures.loss_difference:.1e}")
    if figures.processes > 1:
        differ = (f"{difference:.1e}" for difference in figures.gradient_difference.values())
        table.add_row("gradients differ from those of one process by at most", *differ)
    table.caption = "differences are relative"
    return table


def plot(figures: Figures, path: Path) -> None:
    """Plot both loss curves to a file."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for (name, losses), (colour, width) in zip(figures.losses.items(), (("#f2a65a", 4), ("#1f4e79", 1)), strict=True):
        axes.plot(range(1, len(losses) + 1), losses, color=colour, linewidth=width, label=name)
    axes.set(xlabel="step", ylabel="loss", yscale="log", title="Training on handwritten digits, row by row")
    axes.legend(title="kernels")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def percent(part: float) -> str:
    """A number from 0 to 1 as a percentage."""
    return f"{part * 100:.1f} %"


def positive(text: str) -> int:
    """Parse an integer of 1 or more."""
    number = int(text)
    if number < 1:
        msg = f"expected 1 or more, got {number}"
        raise argparse.ArgumentTypeError(msg)
    return number


def writable(text: str) -> Path:
    """Parse the path of a file that can be written, before the long training instead of after it."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        msg = f"{path} is a folder" if path.is_dir() else f"the folder {path.parent} does not exist"
        raise argparse.ArgumentTypeError(msg)
    return path


def main() -> None:
    """Train, compare and show the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=positive, default=30, metavar="N", help="passes over the digits (30)")
    parser.add_argument("--plot", type=writable, metavar="FILE", help="plot the losses to a file: .png, .svg or .pdf")
    parser.add_argument("--json", type=writable, metavar="FILE", help="write all figures and losses as JSON")
    asked = parser.parse_args()
    if asked.plot and asked.plot.suffix not in PICTURES:
        parser.error(f"argument --plot: {asked.plot} must end in one of {', '.join(PICTURES)}")
    torch.set_num_threads(1)  # synchronising threads would take longer than a step of this size
    team = Team.joined()
    figures = train(team, asked.epochs)
    if team.size > 1:
        dist.destroy_process_group()
    if team.rank > 0:
        return
    Console(highlight=False).print(table_of(figures))
    if asked.json:
        asked.json.write_text(json.dumps(vars(figures), indent=2) + "\n")
    if asked.plot:
        plot(figures, asked.plot)
    if failures := figures.failures():
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
