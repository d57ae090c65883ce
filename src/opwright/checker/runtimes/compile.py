"""`torch.compile`: the fake kernel, the operator in a graph of fused kernels, changing sizes, and the backward."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import BackendCompilerFailed

from opwright.checker.behavior.fake_kernel import check_fake
from opwright.checker.kinds import Kind
from opwright.checker.models import graphs, repro, source
from opwright.checker.models.gradients import check_gradients, has_gradient, requiring_grad
from opwright.checker.steps import Steps
from opwright.checker.verdict import Failure
from opwright.errors import ToolchainError
from opwright.spec.difference import first_line
from opwright.toolchain.compiler import find_cxx, inductor_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch.fx import GraphModule

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "compile"

# Each graph takes seconds in Python. One that is fully compiled also takes seconds in a C++ compiler.
_MOST_GRAPHS = 4
_MOST_COMPILED = 1


def why_not(subject: Subject) -> str:  # noqa: ARG001  the signature of a runtime
    """Nothing: every operator has a fake kernel, so all of them can be compiled."""
    return ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Check the fake kernel, then a graph for every group of samples, then one that is fully compiled."""
    steps = Steps(subject, recorder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_fake(steps)
        if recorder.failed:
            return  # graphs are traced with the fake kernel
        groups = graphs.alike([case for case in subject.samples if not subject.expected(case).refusal])
        for group in groups[:_MOST_GRAPHS]:
            _check_graph(steps, group)
        if recorder.failed:
            return
        if subject.options.quick:
            recorder.note("the graph was run without fused kernels: --quick")
            return
        try:
            find_cxx()
        except ToolchainError:
            recorder.note("the graph was run without fused kernels: no C++ compiler was found")
            return
        if len(groups) > _MOST_COMPILED:
            made = f"{min(len(groups), _MOST_GRAPHS)} graphs, of which {_MOST_COMPILED} was fully compiled"
            recorder.note(f"{made}, for {len(groups)} combinations of constants and dtypes")
        for group in groups[:_MOST_COMPILED]:
            _check_compiled(steps, [*group, *graphs.other_sizes(subject, group[0])])


def _check_graph(steps: Steps, group: Sequence[Case]) -> None:
    """Run a group of samples through one graph, traced with symbolic sizes, without compiling it further."""
    subject = steps.subject
    made: list[GraphModule] = []

    def keep(graph: GraphModule, _: Any) -> GraphModule:
        made.append(graph)
        return graph

    function = _compiled(subject, backend=aot_autograd(fw_compiler=keep))
    with torch.no_grad():
        for case in group:
            _run(steps, f"{case.name}, as a graph", case, function)
    if made and not all(graphs.holds(subject, graph) for graph in made):
        steps.recorder.fail(
            Failure(
                Kind.NOT_IN_GRAPH,
                f"{group[0].name}, as a graph",
                _code(subject, group[0]),
                got="\n".join(str(graph.graph) for graph in made),
                expected=f"a graph that calls {subject.op.qualified_name}",
            )
        )


def _check_compiled(steps: Steps, cases: Sequence[Case]) -> None:
    subject = steps.subject
    function = _with_numbers_as_needed(steps)
    for case in cases:
        if not case.claimed and not _accepts(steps, case):
            continue
        if not _run(steps, f"{case.name}, compiled", case, function):
            return
        if has_gradient(subject, case):
            step = f"{case.name}, compiled, the backward"

            def forward(arguments: dict[str, Any]) -> list[Any]:
                return source.outcome(subject, function(**arguments), arguments)

            code = repro.trained(subject, case, _code(subject, case))
            check_gradients(steps, step, code, case, forward)


def _with_numbers_as_needed(steps: Steps) -> Callable[..., Any]:
    """The compiled operator, whose numeric arguments are symbolic if PyTorch supports that for the operator.

    Some of PyTorch's gradients do not support symbolic numbers: that of `pow` fails one of PyTorch's assertions. By
    default, `torch.compile` makes numbers symbolic only if they change.
    """
    function = _compiled(steps.subject, backend="inductor")

    def call(**arguments: Any) -> Any:
        nonlocal function
        try:
            return function(**arguments)
        except BackendCompilerFailed as error:
            constant = _compiled(steps.subject, backend="inductor", dynamic=None)
            try:
                results = constant(**arguments)
            except Exception:
                raise error from None
            function = constant
            steps.recorder.note(f"PyTorch cannot compile it with symbolic numbers: {first_line(error.inner_exception)}")
            return results

    return call


def _accepts(steps: Steps, case: Case) -> bool:
    """Whether eager mode returns a result for a variation; the operator may reject it."""
    if not steps.recorder.begin(f"{case.name}, in eager mode", steps.subject.code(case), group=case.group):
        return False
    try:
        steps.subject.call(case.fresh())
    except Exception:
        return False
    return True


def _compiled(subject: Subject, backend: Any, *, dynamic: bool | None = True) -> Any:
    # Otherwise earlier compilations would count towards the recompilation limit of a function.
    torch._dynamo.reset()
    options: Any = (inductor_settings() or None) if backend == "inductor" else None
    return torch.compile(source.between(subject), fullgraph=True, dynamic=dynamic, backend=backend, options=options)


def _run(steps: Steps, step: str, case: Case, function: Any) -> bool:
    subject = steps.subject
    # With gradients if the case has any, because the training graph also computes the results.
    arguments = (
        requiring_grad(subject, case) if has_gradient(subject, case) and torch.is_grad_enabled() else case.fresh()
    )
    return steps.judge(
        step, _code(subject, case), case, lambda: source.outcome(subject, function(**arguments), arguments)
    )


def _code(subject: Subject, case: Case) -> str:
    return repro.instead(subject, case, lambda call: f"torch.compile(lambda: {call}, fullgraph=True, dynamic=True)()")
