"""Eager: calls the operator from Python on every variation of its samples, and on inputs that it must reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.checker.behavior.cuda_graph import check_cuda_graph
from opwright.checker.behavior.current_stream import check_current_stream
from opwright.checker.behavior.errors import check_errors
from opwright.checker.behavior.forked import check_forked
from opwright.checker.behavior.guarded_memory import check_guarded_memory
from opwright.checker.behavior.later import check_finality, check_later
from opwright.checker.behavior.leaks import check_memory_growth
from opwright.checker.behavior.opcheck import check_with_opcheck
from opwright.checker.behavior.other_gpu import check_other_gpu
from opwright.checker.behavior.ownership import check_ownership
from opwright.checker.behavior.process_state import check_process_state
from opwright.checker.behavior.repetition import check_repetition
from opwright.checker.behavior.results import check_results
from opwright.checker.behavior.threads import check_threads
from opwright.checker.behavior.under_tool import check_under_tool
from opwright.checker.behavior.widest import widest_variation
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "eager"


def why_not(_subject: Subject) -> str:
    """Why eager mode does not apply: never, because every operator can be called."""
    return ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Call the operator on all cases, then check its behavior."""
    if subject.options.tool:
        check_under_tool(subject, recorder)
        return
    check_process_state(subject, recorder)
    check_current_stream(subject, recorder)
    if recorder.has(Kind.STREAM):
        return  # whether further results are right is a matter of chance
    check_ownership(subject, recorder)
    check_finality(subject, recorder, subject.samples)
    check_results(subject, recorder, subject.samples)
    check_cuda_graph(subject, recorder)
    check_other_gpu(subject, recorder)
    check_errors(subject, recorder)
    if not recorder.failed:
        # Variations would only repeat a fault of the simplest case.
        check_results(subject, recorder, subject.varied)
        check_results(subject, recorder, subject.limits())
        _check_large(subject, recorder)
    if not (recorder.failed or recorder.has_died):
        check_results(subject, recorder, subject.pairs())
    if (widest := widest_variation(subject, recorder)) is not None:
        check_finality(subject, recorder, [widest])
    check_later(subject, recorder)
    check_repetition(subject, recorder)
    check_guarded_memory(subject, recorder)
    check_threads(subject, recorder)
    check_forked(subject, recorder)
    check_memory_growth(subject, recorder)
    check_with_opcheck(subject, recorder)


def _check_large(subject: Subject, recorder: Recorder) -> None:
    case, reason = subject.large()
    if reason:
        recorder.note(reason)
    if case is None:
        return
    check_results(subject, recorder, [case])
    subject.forget(case)
    if subject.device == "cuda":
        del case
        torch.cuda.empty_cache()  # the judge requires GPU memory too
