"""Shared by the three runtimes in a C++ process: their requirements, the process itself, and its responses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from opwright.builder.symbols import needs_python, python_calls
from opwright.checker.kinds import Kind
from opwright.checker.models import repro, source
from opwright.checker.models.gradients import has_gradient, judge_gradients, requiring_grad
from opwright.checker.verdict import Failure
from opwright.errors import ToolchainError
from opwright.loader.bridge import build_bridge
from opwright.loader.external import native_objects
from opwright.loader.kernels import has_native_gradient_kernel, has_native_kernel
from opwright.probe.build import build_probe
from opwright.probe.run import run_probe
from opwright.toolchain.compiler import find_cxx

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opwright.checker.cases.case import Case
    from opwright.checker.steps import Steps
    from opwright.checker.subject import Subject
    from opwright.probe.exchange import Response
    from opwright.probe.run import ProbeRun
    from opwright.spec import Op

# The time limit for all samples together, so that a hang does not block the rest of the check.
_LONGEST_S = 300.0


@dataclass(frozen=True)
class Question:
    """One request to the process, with its context.

    Attributes:
        step: a description of the step.
        case: the call.
        repro: lines of Python that make the same call.
        arguments: the arguments of the model.
        with_gradients: whether the gradients are compared too.
    """

    step: str
    case: Case
    repro: str
    arguments: tuple[Any, ...]
    with_gradients: bool = False


def why_not(subject: Subject) -> str:
    """What the operator lacks to run in a process without Python; empty if nothing."""
    if subject.is_external:
        return _why_not_external(subject)
    if not subject.library.sources:
        return _needs_kernel(subject.op, f"name sources=[...] in op.py and implement {subject.op.name} there")
    if not has_native_kernel(subject.op.qualified_name, subject.device):
        block = f"OPWRIGHT_IMPL({subject.library.namespace}, {subject.device.upper()}, m)"
        return _needs_kernel(subject.op, f"implement {subject.op.name} in {block}")
    if subject.path is not None and (calls := python_calls(subject.path)):
        return (
            f"{subject.path.name} calls {calls[0]} of Python, so a process without Python cannot open it: move the "
            "Python bindings out of the operators' sources"
        )
    return _why_no_compiler()


def _why_not_external(subject: Subject) -> str:
    if not has_native_kernel(subject.op.qualified_name, subject.device):
        return f"no native kernel: {subject.op.qualified_name} has none for the {subject.device.upper()}"
    if needing := [path.name for path in libraries(subject) if needs_python(path)]:
        return f"{', '.join(needing)} calls Python, so a process without Python cannot open it"
    return _why_no_compiler()


def _why_no_compiler() -> str:
    try:
        find_cxx()
    except ToolchainError:
        return "the probe requires a C++ compiler, and none was found: `opwright doctor` shows how to install one"
    return ""


def libraries(subject: Subject) -> list[Path]:
    """The libraries that the process opens or is linked with: the operator library, and the autograd bridge."""
    if subject.library.is_external:
        return native_objects(subject.library)
    if subject.path is None:  # only for the type checker: `why_not` has reported it
        raise AssertionError
    return [subject.path, *([build_bridge()] if _has_native_gradient(subject) and not subject.is_external else [])]


def check_torchscript(steps: Steps, *, linked: bool) -> None:
    """Run the samples, and their gradients where they are native, through a TorchScript model.

    Args:
        steps: the steps of the cell.
        linked: whether the program is linked with the libraries, or opens them.
    """
    subject = steps.subject
    recorded = [case for case in subject.claimed if has_gradient(subject, case)]
    if recorded and not _has_native_gradient(subject) and not _is_gradient(subject.op):
        how = (
            "its gradient is registered in Python"
            if subject.is_external
            else "declare a native backward, and implement it"
        )
        steps.recorder.note(f"no gradient without Python: {how}")
    opened = libraries(subject)
    program = host_program(steps, opened if linked else [])
    path = subject.work / f"{subject.op.name}_host.pt"
    call = repro.script(subject, subject.samples[0])
    saved = steps.do("a model saved for the process without Python", call, lambda: _saved(subject, path))
    if program is None or saved is None:
        return
    cases = [case for case in subject.claimed if not subject.expected(case).refusal]
    questions = [
        Question(
            f"{case.name}, arguments by {how}",
            case,
            _code(subject, case, linked=linked),
            (*source.plain(case.fresh()).values(), by_name),
        )
        for how, by_name in (("name", True), ("place", False))
        for case in cases
    ]
    if _has_native_gradient(subject):
        questions += [
            Question(
                f"{case.name}, with gradients",
                case,
                _code(subject, case, linked=linked, with_gradients=True),
                (*source.plain(requiring_grad(subject, case)).values(), True),
                with_gradients=True,
            )
            for case in recorded
        ]
    ask(steps, program, path, questions, [] if linked else opened, backward=_has_native_gradient(subject))


def host_program(steps: Steps, linked: Sequence[Path] = ()) -> Path | None:
    """The program, linked with the libraries `linked`; the first build takes a while."""
    step = "the program without Python, linked with the library" if linked else "the program without Python"
    return steps.do(f"{step}, built", "", lambda: build_probe(linked))


def ask(
    steps: Steps,
    program: Path,
    path: Path,
    questions: Sequence[Question],
    opened: Sequence[Path],
    *,
    backward: bool = False,
) -> None:
    """Run all `questions` through the model at `path`, and judge the responses."""
    subject = steps.subject
    done = steps.do(
        "all calls in a process without Python",
        questions[0].repro,
        lambda: run_probe(
            program,
            path,
            [question.arguments for question in questions],
            work=subject.work,
            libraries=opened,
            backward=backward,
            timeout_s=_LONGEST_S,
        ),
    )
    if done is None:
        return
    if done.error:
        _died(steps, done, questions)
        return
    if done.python_mapped:
        got = "Python is loaded in the process"
        wanted = "a process without Python: link nothing that requires it"
        steps.recorder.fail(Failure(Kind.RUNTIME, "the process without Python", questions[0].repro, got, wanted))
    for question, response in zip(questions, done.responses, strict=True):
        _judge(steps, question, response)


def _judge(steps: Steps, question: Question, response: Response) -> None:
    if response.error:
        steps.recorder.fail(
            Failure(Kind.RUNTIME, question.step, question.repro, got=response.error, expected="a result, as in Python")
        )
        return
    leaves, shape = list(response.outputs), pytree.tree_structure(list(steps.subject.expected(question.case).own))
    results = pytree.tree_unflatten(leaves, shape) if len(leaves) == shape.num_leaves else leaves
    if steps.judged(question.step, question.repro, question.case, results) and question.with_gradients:
        judge_gradients(steps, question.step, question.repro, question.case, list(response.gradients))


def _died(steps: Steps, done: ProbeRun, questions: Sequence[Question]) -> None:
    """Record that the process did not finish."""
    question = questions[done.request or 0]
    kind = Kind.HANG if done.timed_out else Kind.CRASH if done.signal else Kind.RUNTIME
    step = question.step if done.request is not None else "the process without Python"
    failure = Failure(kind, step, question.repro, got=done.error, expected="a result, as in Python")
    steps.recorder.fail(dataclasses.replace(failure, detail=done.output.strip()[-2000:]))


def _saved(subject: Subject, path: Path) -> Path:
    torch.jit.script(source.whole(subject)).save(str(path))
    return path


def _code(subject: Subject, case: Case, *, linked: bool, with_gradients: bool = False) -> str:
    code = repro.script(subject, case)
    if with_gradients:
        code = repro.requiring(subject, case, code)
    file = '(model.save("model.pt"), "model.pt")[1]'
    given = repro.values(source.plain(case.arguments))
    return repro.in_host(subject, code, file, given, linked=linked, with_gradients=with_gradients)


def _has_native_gradient(subject: Subject) -> bool:
    """Whether the gradient is computed by native operators that have kernels for the device."""
    if subject.is_external:
        return has_native_gradient_kernel(subject.op, subject.device)
    gradient = subject.op.gradient
    if not subject.library.sources or gradient is None:
        return False
    return all(has_native_kernel(op.qualified_name, subject.device) for op in (gradient.forward, gradient.op))


def _is_gradient(op: Op) -> bool:
    gradients = [other.gradient.op for other in op.library.ops.values() if other.gradient is not None]
    return any(gradient is op for gradient in gradients)


def _needs_kernel(op: Op, how: str) -> str:
    return f"no native kernel: {op.qualified_name} exists only in Python; {how}"
