"""The mutation score: how many mutants a check notices, and which ones it misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from opwright.checker.mutants.mutant import Mutant

Fate = Literal["killed", "survived", "equivalent", "marked", "rejected"]
FATES: tuple[Fate, ...] = get_args(Fate)


@dataclass(frozen=True)
class MutantResult:
    """The outcome of a mutant.

    Attributes:
        mutant: the mutant.
        fate: `killed` if the check noticed it; `survived` if not; `equivalent` if its object code is that of the
            library; `marked` if the source marks it as equivalent; `rejected` if a compiler rejects it.
        noticed: where and how the check noticed it, or why the author marked it; may be empty.
        by_quick: whether a quick check noticed it.
        seconds: how long it took.
    """

    mutant: Mutant
    fate: Fate
    noticed: str = ""
    by_quick: bool = False
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The result in JSON."""
        mutant = self.mutant
        return {
            "file": str(mutant.file),
            "line": mutant.line,
            "column": mutant.column,
            "change": mutant.edit.change.value,
            "diff": mutant.diff(),
            "fate": self.fate,
            "noticed": self.noticed,
            "by_quick": self.by_quick,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class MutationReport:
    """The mutants of a library, and their outcomes.

    Attributes:
        namespace: the library's namespace.
        path: the folder of its op.py.
        pytorch: PyTorch's version.
        machine: a short description of the machine.
        seed: the seed of the check's random inputs, and of the choice of mutants.
        quick: whether the check was a quick one.
        possible: the number of mutants that the sources have.
        results: the mutants that were tried, in the order of the sources.
        seconds: how long everything took.
    """

    namespace: str
    path: str
    pytorch: str
    machine: str
    seed: int
    quick: bool
    possible: int
    results: tuple[MutantResult, ...] = ()
    seconds: float = 0.0

    def count(self, fate: Fate) -> int:
        """The number of mutants with that fate."""
        return sum(result.fate == fate for result in self.results)

    @property
    def survivors(self) -> list[MutantResult]:
        """The mutants that the check did not notice."""
        return [result for result in self.results if result.fate == "survived"]

    @property
    def score(self) -> float | None:
        """The share of non-equivalent mutants that the check noticed; None if there are none."""
        return self._share(self.count("killed"))

    @property
    def quick_score(self) -> float | None:
        """The same share for a quick check alone."""
        return self._share(sum(result.by_quick for result in self.results))

    def _share(self, noticed: int) -> float | None:
        judged = self.count("killed") + self.count("survived")
        return noticed / judged if judged else None

    @property
    def passed(self) -> bool:
        """Whether there are mutants, and the check noticed all of them."""
        return self.count("killed") > 0 and not self.survivors

    def to_json(self) -> dict[str, Any]:
        """The report as `--json` writes it."""
        return {
            "passed": self.passed,
            "namespace": self.namespace,
            "path": self.path,
            "pytorch": self.pytorch,
            "machine": self.machine,
            "seed": self.seed,
            "quick": self.quick,
            "possible": self.possible,
            **{fate: self.count(fate) for fate in FATES},
            "score": self.score,
            "quick_score": self.quick_score,
            "mutants": [result.to_json() for result in self.results],
            "seconds": self.seconds,
        }
