"""Shows the progress of a check of mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.report.format import duration, printable
from opwright.report.live import LiveBar

if TYPE_CHECKING:
    from rich.progress import TaskID

    from opwright.checker.mutants.mutant import Mutant
    from opwright.checker.mutants.score import MutantResult


class MutantProgress(LiveBar):
    """The progress of one check of mutants.

    On a terminal, it shows a progress bar of the mutants that were killed or survived, and a line for each running
    mutant. Elsewhere, it prints nothing. With `verbose`, it prints one line for each finished mutant. Mutants may run
    in several threads.
    """

    def start(self, namespace: str, count: int | None) -> None:
        """Show that the unchanged library is checked first."""
        self._survived = 0
        self._running: dict[Mutant, TaskID] = {}
        self._live.update(self._bar, description=f"{namespace}: checking the unchanged library", total=count)

    def begin(self, mutant: Mutant) -> None:
        """Show that a mutant is built and checked."""
        self._running[mutant] = self._live.add_task(f"  {printable(mutant.name)}", total=None)

    def end(self, result: MutantResult) -> None:
        """Show the outcome of a mutant."""
        if result.mutant in self._running:
            self._live.remove_task(self._running.pop(result.mutant))
        self._survived += result.fate == "survived"
        counted = result.fate in {"killed", "survived"}
        words = f"{self._namespace}: {self._survived} survived"
        self._live.update(self._bar, description=words, advance=int(counted))
        if self._verbose:
            noticed = f"  {result.noticed}" if result.noticed else ""
            line = f"{result.fate:<10}  {duration(result.seconds):>6}  {result.mutant.name}{noticed}"
            self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
