"""`torch.jit.script`: compiles one model for all samples, and runs, saves, loads and trains it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.kinds import Kind
from opwright.checker.models import graphs, repro, source
from opwright.checker.models.gradients import check_gradients, has_gradient
from opwright.checker.steps import Steps
from opwright.checker.verdict import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "script"

# The executor profiles the first calls, and then runs optimized code.
_CALLS = 3


def why_not(subject: Subject) -> str:  # noqa: ARG001  the signature of a runtime
    """Nothing: TorchScript supports every operator that has a schema."""
    return ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Run all samples through one model, along both of its branches."""
    steps = Steps(subject, recorder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = subject.samples[0]
        call = repro.script(subject, first)
        scripted = steps.do("a model compiled to TorchScript", call, lambda: torch.jit.script(source.whole(subject)))
        if scripted is None:
            return
        if not graphs.records(subject, scripted):
            wanted = f"a graph that calls {subject.op.qualified_name}"
            got = str(scripted.inlined_graph)
            recorder.fail(Failure(Kind.NOT_IN_GRAPH, first.name, call, got=got, expected=wanted))
        cases = subject.samples if subject.options.quick else subject.claimed
        for case in cases:
            _check(steps, case, scripted)
        path = subject.work / f"{subject.op.name}_scripted.pt"
        loaded = steps.do("the model saved and loaded", call, lambda: _round_trip(scripted, path))
        if loaded is not None:
            _run(steps, first, loaded, "in the loaded model", by_name=True)


def _check(steps: Steps, case: Case, scripted: torch.jit.ScriptModule) -> None:
    if steps.subject.expected(case).refusal:
        return
    _run(steps, case, scripted, "arguments by name", by_name=True)
    _run(steps, case, scripted, "arguments by place", by_name=False)
    if has_gradient(steps.subject, case):

        def call(arguments: dict[str, Any]) -> list[Any]:
            return _outcome(steps, scripted(*arguments.values(), False), arguments)

        code = repro.trained(steps.subject, case, repro.script(steps.subject, case))
        check_gradients(steps, f"{case.name}, trained", code, case, call)


def _run(steps: Steps, case: Case, scripted: torch.jit.ScriptModule, which: str, *, by_name: bool) -> None:
    def call() -> list[Any]:
        for _ in range(_CALLS):
            arguments = case.fresh()
            output = scripted(*arguments.values(), by_name)
        return _outcome(steps, output, arguments)

    steps.judge(f"{case.name}, {which}", repro.script(steps.subject, case), case, call)


def _outcome(steps: Steps, output: Any, arguments: dict[str, Any]) -> list[Any]:
    return source.outcome(steps.subject, source.from_lists(steps.subject, output), arguments)


def _round_trip(scripted: torch.jit.ScriptModule, path: Path) -> torch.jit.ScriptModule:
    torch.jit.save(scripted, path)
    loaded: torch.jit.ScriptModule = torch.jit.load(path)
    return loaded
