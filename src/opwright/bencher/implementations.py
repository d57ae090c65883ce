"""The ways to compute an operator: its reference as it stands, the same compiled, and the operator itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.bencher import verify
from opwright.bencher.result import Row
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.bencher.result import Direction, RowName
    from opwright.bencher.subject import Subject, Way
    from opwright.spec import Op

# What may raise without a fault of the operator: a compiler, and a reference that autograd cannot follow.
_NO_FAULT: dict[RowName, str] = {"compiled": "it cannot be compiled: ", "reference": "it gives no gradient: "}


def ways_of(op: Op, *, compiled: bool) -> dict[RowName, Way]:
    """The ways, by the names of their rows.

    What was compiled for another size, or for another number of threads, is forgotten: each gets a graph of its own.
    """
    found: dict[RowName, Way] = {"reference": op.reference}
    if compiled:
        torch.compiler.reset()
        found["compiled"] = torch.compile(
            op.reference, fullgraph=True, dynamic=False, options={"cpp.threads": torch.get_num_threads()}
        )
    found["native"] = getattr(getattr(torch.ops, op.library.namespace), op.name).default
    return found


class Verified:
    """The ways of one subject, each looked at once before it is timed.

    Attributes:
        ways: the ways, by the names of their rows.
    """

    def __init__(self, subject: Subject, ways: dict[RowName, Way]) -> None:
        self.ways = ways
        self._subject = subject
        self._refusals: dict[tuple[RowName, bool], Row | None] = {}

    def refusal(self, name: RowName, direction: Direction) -> Row | None:
        """The row that says why a way is not timed in a direction; None where it is right."""
        recorded = direction != "forward"
        if (name, recorded) not in self._refusals:
            self._refusals[name, recorded] = self._look(name, recorded=recorded)
        return self._refusals[name, recorded]

    def _look(self, name: RowName, *, recorded: bool) -> Row | None:
        refused = self._subject.expected.refusal
        if refused:
            said = f"the reference does not take this size: {refused}"
            return Row(name, "raises" if name == "reference" else "left out", reason=said)
        if name == "reference" and not recorded:
            return None  # it is what the others are compared with
        if recorded and name != "reference" and self.refusal("reference", "backward"):
            return Row(name, "left out", reason="the reference gives no gradient to compare with")
        look = verify.gradient_fault if recorded else verify.result_fault
        try:
            fault = look(self._subject, self.ways[name])
        except Exception as error:
            excuse = _NO_FAULT.get(name, "")
            return Row(name, "left out" if excuse else "raises", reason=excuse + first_line(error))
        return Row(name, "wrong", reason=fault) if fault else None
