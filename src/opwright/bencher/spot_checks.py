"""Verifies timed calls chosen at random: that their results are correct, and remain correct."""

from __future__ import annotations

import copy
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from opwright.bencher.clocks import seconds_now
from opwright.bencher.contents import storages_of
from opwright.bencher.storages import address
from opwright.bencher.verify import gradients_fault, results_fault
from opwright.spec import derive
from opwright.spec.difference import first_line
from opwright.spec.tensor_bytes import bytes_equal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opwright.bencher.contents import Contents
    from opwright.bencher.result import Direction, RowName
    from opwright.bencher.subject import Subject

# The number of rounds to verify besides the last one, and the number for large arguments: until the rounds have
# finished, each holds the memory of one call per row.
_ROUNDS = 2
_LARGE_ROUNDS = 1
# The fraction of the rounds' time that comparisons may take; beyond it, only the last round is compared, because an
# oracle may take much longer than a call.
_COMPARISON_SHARE = 0.25
# How long to wait for a wrong result to change, to distinguish late results from wrong ones.
_LATE_S = 0.2

_CHANGED = "the result changed after the call had returned"

_entropy = random.SystemRandom()
# Bound before a library is opened, because the library could replace it.
_sleep = time.sleep


@dataclass
class _Kept:
    """The outputs of a kept call, and a copy of them made when the call returned."""

    outputs: list[Any]
    at_return: list[Any]

    def changed(self) -> bool:
        """Whether the outputs have changed since the call returned."""
        pairs = zip(derive.tensors(self.outputs), derive.tensors(self.at_return), strict=True)
        return not all(bytes_equal(*pair) for pair in pairs)


@dataclass
class _Round:
    """A round that is verified: the arguments of its kept calls, and these calls by row."""

    subject: Subject
    kept: dict[RowName, _Kept] = field(default_factory=dict)


class SpotChecks:
    """Keeps some calls from timed blocks, and compares their results with the expected ones for their contents.

    In rounds chosen at random, and in one after the last, keeps each row's call with one of the sets of arguments, at
    a random position in its block.

    Args:
        contents: the sets of arguments that the rows share.
        direction: the direction that is timed.
        names: the rows to verify.

    Attributes:
        raised: what a call of a row raised, by row.
    """

    def __init__(self, contents: Contents, direction: Direction, names: Sequence[RowName]) -> None:
        self.raised: dict[RowName, str] = {}
        self._contents = contents
        self._direction = direction
        self._names = names
        self._rounds: list[_Round] = []
        self._most_rounds = _LARGE_ROUNDS if contents.is_large else _ROUNDS
        self._mutated: dict[RowName, str] = {}
        self._source: Subject | None = None
        self._started = seconds_now()

    def wants(self, rounds: int) -> bool:
        """Whether to verify the next round; every round is equally likely to be chosen."""
        wanted = _entropy.random() * (rounds + 1) < self._most_rounds
        if wanted and len(self._rounds) >= self._most_rounds:
            self._rounds.pop(_entropy.randrange(self._most_rounds))
        return wanted

    def begin(self) -> int:
        """Change the contents of the sets, and keep a copy of one; returns its number."""
        self._contents.restore()
        self._contents.renew()
        turn = _entropy.randrange(len(self._contents.subjects))
        self._source = self._contents.subjects[turn]
        self._rounds.append(
            _Round(self._source.twin(self._source.fresh(), copy.deepcopy(self._source.gradients.grads)))
        )
        return turn

    def order(self, names: Sequence[RowName]) -> list[RowName]:
        """The operator first: memory that the reference freed would hold the results that the operator must compute."""
        first: tuple[RowName, ...] = ("native", "graphed", "compiled", "reference")
        return sorted(names, key=lambda name: first.index(name) if name in first else len(first))

    def keeps(self, name: RowName) -> bool:
        """Whether a call of this row is kept: the floor has no results."""
        return name in self._names

    def keep(self, name: RowName, call: Callable[[], object], result: object) -> None:
        """Keep the outputs of a call, and a copy of their present values."""
        chosen = self._rounds[-1]
        if self._source is None:  # `begin` must be called first
            raise AssertionError
        outputs = chosen.subject.outputs(self._direction, call, result)
        at_return = _cloned(outputs)
        given = storages_of(self._source)
        # Plain PyTorch may return an argument, whose contents change before the next block.
        is_argument = {address(tensor) for tensor in derive.tensors(outputs)} & set(map(address, given))
        # The next replay of a CUDA graph overwrites the results of this one, as PyTorch documents.
        is_reused = is_argument or name == "graphed"
        chosen.kept[name] = _Kept(at_return if is_reused else outputs, at_return)
        for storage, copied in zip(given, storages_of(chosen.subject), strict=True):
            if not bytes_equal(storage, copied):
                self._mutated[name] = "the call changed an argument that it does not declare in mutates"
                storage.copy_(copied)

    def failed(self, name: RowName, error: Exception) -> None:
        """Record that a call raised an exception."""
        self.raised[name] = first_line(error)

    def faults(self) -> dict[RowName, str]:
        """The fault of each wrong row: the first one found in a kept call."""
        faults = dict(self._mutated)
        for chosen in self._rounds:
            faults |= {name: _CHANGED for name, kept in chosen.kept.items() if kept.changed()}
        started = seconds_now()
        allowed = _COMPARISON_SHARE * (started - self._started)
        # Compare the last round first, and always, because a kernel may be right at first and do nothing later.
        for number, chosen in enumerate(reversed(self._rounds)):
            if number and seconds_now() - started > allowed:
                break
            for name, kept in chosen.kept.items():
                fault = "" if name in faults else self._difference(chosen.subject, kept.at_return)
                if fault:
                    faults[name] = _CHANGED if _changes_later(kept) else fault
        return faults

    def _difference(self, subject: Subject, outputs: list[Any]) -> str:
        if self._direction in {"backward", "both"}:
            return gradients_fault(subject, outputs)
        # A call that the reference rejects has no expected result.
        return "" if subject.expected.refusal else results_fault(subject, outputs)


def _changes_later(kept: _Kept) -> bool:
    """Whether wrong outputs are still changing: the call left its work to a thread that has not finished."""
    deadline = seconds_now() + _LATE_S
    while not kept.changed() and seconds_now() < deadline:
        _sleep(_LATE_S / 10)
    return kept.changed()


def _cloned(outputs: list[Any]) -> list[Any]:
    return [_cloned(list(one)) if isinstance(one, (list, tuple)) else _clone(one) for one in outputs]


def _clone(output: Any) -> Any:
    return output.detach().clone() if isinstance(output, Tensor) else output
