"""The implementations of an operator: its reference, eager and compiled, and the operator itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from opwright.bencher import verify
from opwright.bencher.result import Row
from opwright.loader.kernels import overload_of
from opwright.spec.difference import first_line
from opwright.toolchain.compiler import inductor_settings

if TYPE_CHECKING:
    from opwright.bencher.result import Direction, RowName
    from opwright.bencher.subject import Implementation, Subject

# These may raise although the operator is correct; the row is then skipped, with this reason.
_NO_FAULT: dict[RowName, str] = {
    "compiled": "it cannot be compiled: ",
    "graphed": "it cannot be compiled: ",
    "reference": "it has no gradient: ",
}
_ONE_FORWARD = "CUDA graphs keep the results of one forward at a time, and a block of backwards needs several"


def implementations_of(subject: Subject, *, compiled: bool) -> dict[RowName, Implementation]:
    """The implementations, by the names of their rows.

    Graphs that were compiled for another size or number of threads are discarded, so that each gets its own.

    Args:
        subject: the operator at one size; on a GPU, its reference is also compiled with CUDA graphs.
        compiled: whether to compile the reference.
    """
    op = subject.op
    found: dict[RowName, Implementation] = {"reference": op.reference}
    if compiled:
        torch.compiler.reset()
        options: dict[str, Any] = {"cpp.threads": torch.get_num_threads(), **inductor_settings()}
        found["compiled"] = torch.compile(op.reference, fullgraph=True, dynamic=False, options=options)
        if subject.device == "cuda":
            # The settings of mode="reduce-overhead"; torch.compile accepts a mode or options.
            options["triton.cudagraphs"] = True
            found["graphed"] = _one_step(torch.compile(op.reference, fullgraph=True, dynamic=False, options=options))
    found["native"] = overload_of(op)
    return found


def _one_step(compiled: Implementation) -> Implementation:
    """The implementation, with each call as a separate step: the next call may overwrite its results.

    Without this, PyTorch waits for the backward of a recorded call, and runs the next calls without a CUDA graph.
    """

    def run(*positional: Any, **keywords: Any) -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(*positional, **keywords)

    return run


class Verified:
    """The implementations of one subject, each verified once before timing.

    Attributes:
        subject: the subject.
        implementations: the implementations, by the names of their rows.
    """

    def __init__(self, subject: Subject, implementations: dict[RowName, Implementation]) -> None:
        self.subject = subject
        self.implementations = implementations
        self._refusals: dict[tuple[RowName, bool], Row | None] = {}

    def refusal(self, name: RowName, direction: Direction) -> Row | None:
        """The row with the reason why an implementation is not timed in a direction; None if it is correct."""
        if name == "graphed" and direction == "backward":
            return Row(name, "skipped", reason=_ONE_FORWARD)
        recorded = direction != "forward"
        if (name, recorded) not in self._refusals:
            self._refusals[name, recorded] = self._verify(name, recorded=recorded)
        return self._refusals[name, recorded]

    def _verify(self, name: RowName, *, recorded: bool) -> Row | None:
        refused = self.subject.expected.refusal
        if refused:
            reason = f"the reference rejects this size: {refused}"
            return Row(name, "raises" if name == "reference" else "skipped", reason=reason)
        if name == "reference" and not recorded:
            return None  # the others are compared with it
        if recorded and name != "reference" and self.refusal("reference", "backward"):
            return Row(name, "skipped", reason="the reference has no gradient to compare with")
        find_fault = verify.gradient_fault if recorded else verify.result_fault
        try:
            fault = find_fault(self.subject, self.implementations[name])
        except Exception as error:
            excuse = _NO_FAULT.get(name, "")
            return Row(name, "skipped" if excuse else "raises", reason=excuse + first_line(error))
        return Row(name, "wrong", reason=fault) if fault else None
