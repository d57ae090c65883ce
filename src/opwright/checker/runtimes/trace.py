"""`torch.jit.trace`: runs a recorded graph on the recorded numbers and on others."""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import TYPE_CHECKING

import torch

from opwright.checker.cases.samples import constants, samples
from opwright.checker.kinds import Kind
from opwright.checker.models import graphs, repro, source
from opwright.checker.steps import Steps
from opwright.checker.verdict import Failure
from opwright.spec import derive

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "trace"

# Arguments that PyTorch's tracer does not support.
_UNRECORDED = re.compile(r"Device|List\[(?!Tensor|int|float)")


def why_not(subject: Subject) -> str:
    """Why nothing can be recorded."""
    others = [result for result in subject.op.results if "Tensor" not in result]
    if others:
        return f"a recorded graph returns only tensors, but the operator returns {', '.join(others)}"
    if not derive.tensors(subject.samples[0].arguments):
        return "torch.jit.trace requires tensor arguments, and the operator has none"
    mutated = [parameter for parameter in subject.op.parameters if parameter.mutated]
    if mutated and not subject.op.results and all(parameter.is_list for parameter in mutated):
        return "torch.jit.trace drops calls that only mutate tensors in lists"
    unrecorded = [_unrecorded(subject, case) for case in subject.samples]
    return unrecorded[0] if all(unrecorded) else ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Record each sample, and run the recorded graph."""
    steps = Steps(subject, recorder)
    # The author's own calls again, with other numbers.
    others = samples(subject.op, subject.device, subject.options.seed + 1)
    cases = subject.samples if subject.options.quick else subject.claimed
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for number, case in enumerate(cases, 1):
            if reason := _unrecorded(subject, case):
                recorder.note(reason)
            elif not subject.expected(case).refusal:
                other = others[number - 1] if number <= len(others) else None
                _check(steps, case, other if _fits(case, other) else None, number)


def _fits(case: Case, other: Case | None) -> bool:
    """Whether the graph of `case`, in which sizes and non-tensor arguments are constant, can run `other`."""
    return other is not None and constants(other) == constants(case)


def _unrecorded(subject: Subject, case: Case) -> str:
    """Why the tracer does not support `case`; empty if it does."""
    for parameter in subject.op.parameters:
        if case.arguments[parameter.name] is not None and _UNRECORDED.search(parameter.type):
            return f"torch.jit.trace cannot record an argument {parameter.schema_type} {parameter.name}"
    return ""


def _check(steps: Steps, case: Case, other: Case | None, number: int) -> None:
    subject, recorder = steps.subject, steps.recorder
    call = _code(subject, case)
    step = f"{case.name}, recorded"
    taken = tuple(derive.tensors(case.fresh()))

    def record() -> torch.jit.ScriptModule:
        return torch.jit.trace(source.fixed(subject, case, number), taken, check_trace=False)  # type: ignore[no-any-return]

    traced = steps.do(step, call, record)
    if traced is None:
        return
    if not graphs.records(subject, traced):
        wanted = f"a graph that calls {subject.op.qualified_name}"
        recorder.fail(Failure(Kind.NOT_IN_GRAPH, step, call, got=str(traced.inlined_graph), expected=wanted))
    _run(steps, f"{case.name}, run from the graph", call, case, traced)
    if other is not None:
        other = dataclasses.replace(other, name=f"{case.name} with other numbers")
        _run(steps, f"{other.name}, run from the graph", call, other, traced)

    def round_trip() -> torch.jit.ScriptModule:
        path = subject.work / f"{subject.op.name}_traced_{number}.pt"
        torch.jit.save(traced, path)
        loaded: torch.jit.ScriptModule = torch.jit.load(path)
        return loaded

    loaded = steps.do(f"{case.name}, the graph saved and loaded", call, round_trip)
    if loaded is not None:
        _run(steps, f"{case.name}, run from the loaded graph", call, case, loaded)


def _run(steps: Steps, step: str, call: str, case: Case, traced: torch.jit.ScriptModule) -> None:
    arguments = case.fresh()
    steps.judge(
        step,
        call,
        case,
        lambda: source.outcome(steps.subject, traced(*derive.tensors(arguments)), arguments),
    )


def _code(subject: Subject, case: Case) -> str:
    names = ", ".join(repro.holders(case.arguments))
    return repro.instead(subject, case, lambda call: f"torch.jit.trace(lambda {names}: {call}, ({names},))({names})")
