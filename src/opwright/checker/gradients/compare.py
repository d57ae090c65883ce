"""Compares the gradients that a trial requests with those of the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opwright.checker.behavior.poison import poisoned
from opwright.checker.cases.case import Family
from opwright.checker.gradients.code import gradient_code
from opwright.checker.gradients.goals import are_accurate, expected_of, fault, is_nonzero, magnitude_of
from opwright.checker.gradients.trial import gradients, incoming
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import Difference, Goal, first_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from opwright.checker.gradients.trial import Trial
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# Families in which the reference itself may lose precision.
_ROUGH = {Family.MAGNITUDE, Family.OPTION, Family.PAIR}


def check_trial(subject: Subject, recorder: Recorder, trial: Trial) -> None:
    """Compare the gradients that a trial requests with those of the reference."""
    code = gradient_code(subject, trial.case, trial.names)
    crash = trial.kind if trial.used is not None else Kind.CRASH
    if not recorder.begin(trial.step, code, crash, trial.case.group):
        return
    claimed = trial.case.claimed
    wanted = _wanted(subject, recorder, trial, code)
    if wanted is None:
        return
    grads, goals = wanted
    try:
        with poisoned():
            found = gradients(subject, trial, grads)
            # Detects a dependence on uninitialised memory: on values of the previous call, or on poison.
            others = [gradients(subject, trial, grads)] if claimed else []
        with poisoned(on=False):
            others.append(gradients(subject, trial, grads))
    except Exception as error:
        if claimed:
            raised = Kind.RAISES if crash is Kind.CRASH else crash
            recorder.fail(Failure(raised, trial.step, code, first_line(error), "gradients", detail=str(error)[:2000]))
        else:
            recorder.rejected()
        return
    if found is None:
        _check_missing(subject, recorder, trial.step, code, goals)
        return
    magnitude = magnitude_of(grads, goals)
    for path, goal in goals.items():
        again = [None if other is None else other[path] for other in others]
        wrong = _wrong(trial, path, found[path], again, goal, magnitude)
        if wrong is not None and not _depends_on_memory(subject, trial, wrong[0], grads, goals, magnitude):
            kind, got, expected = wrong
            recorder.fail(Failure(kind, trial.step, code, got, expected))
            return
    recorder.ok()


def _wanted(
    subject: Subject, recorder: Recorder, trial: Trial, code: str
) -> tuple[list[Tensor | None], dict[str, Goal]] | None:
    """The incoming gradients of a trial, and the expected gradients by path; None if the reference has none."""
    claimed = trial.case.claimed
    try:
        grads = incoming(subject, trial)
        goals = expected_of(subject.op, trial, grads)
    except Exception as error:
        if claimed and subject.op.gradient is None:
            # The gradient is derived from the reference, which autograd cannot track, so users get this error too.
            wanted = "a reference that autograd can track, a native backward, or differentiable=() if there is none"
            recorder.fail(Failure(Kind.REFERENCE, trial.step, code, first_line(error), wanted))
        elif claimed:
            recorder.note(f"the reference has no gradient to compare with ({first_line(error)})")
        return None
    rough = trial.case.family in _ROUGH and not (subject.expected(trial.case).is_accurate and are_accurate(goals))
    return None if rough else (grads, goals)


def _wrong(
    trial: Trial, path: str, found: Tensor | None, again: Sequence[Tensor | None], goal: Goal, magnitude: float
) -> tuple[Kind, str, str] | None:
    """Return what is wrong with the gradient `found`; repeated calls computed `again`. None if nothing is wrong."""
    claimed = trial.case.claimed
    changed = [other for other in again if fault(other, Goal(found, found), everywhere=True)]
    wrong = fault(found, goal, everywhere=claimed, magnitude=magnitude)
    # Gradients that differ by rounding, as with atomic additions, may both be correct.
    if wrong is None and any(fault(other, goal, everywhere=claimed, magnitude=magnitude) for other in changed):
        wrong = Difference("values", "a different one when the call is repeated", "the same")
    if wrong is None:
        return None
    kind = Kind.MISSING_GRADIENT if found is None else trial.kind
    kind = Kind.GRADIENT_UNINITIALISED if changed else kind
    return kind, f"the gradient of {path}: {wrong.got}", f"of the reference: {wrong.expected}"


def _depends_on_memory(
    subject: Subject,
    trial: Trial,
    kind: Kind,
    grads: Sequence[Tensor | None],
    goals: Mapping[str, Goal],
    magnitude: float,
) -> bool:
    """Whether the reference has other gradients for the same arguments at other addresses or in contiguous memory.

    Several gradients are then correct, such as those of a median of equal values.
    """
    case = trial.case
    if all(tensor.is_contiguous() for tensor in derive.tensors(case.arguments)):
        return False
    if kind is Kind.GRADIENT_UNINITIALISED and subject.op.gradient is None:
        return True  # PyTorch computes it from the reference
    for other in (case, case.contiguous()):
        try:
            again = expected_of(subject.op, replace(trial, case=other), grads)
        except Exception:
            continue
        found = {path: goal.own for path, goal in again.items()}
        if any(fault(found[path], goal, everywhere=case.claimed, magnitude=magnitude) for path, goal in goals.items()):
            return True
    return False


def _check_missing(subject: Subject, recorder: Recorder, step: str, code: str, goals: Mapping[str, Goal]) -> None:
    """Handle results that do not require a gradient, which is correct only if the reference's gradients are zero."""
    missing = [path for path, goal in goals.items() if is_nonzero(goal.own)]
    if missing:
        wanted = f"a gradient of {', '.join(missing)}, as for the reference"
        recorder.fail(
            Failure(Kind.MISSING_GRADIENT, step, code, "results that do not require a gradient", expected=wanted)
        )
    else:
        recorder.note(f"{subject.op.qualified_name}: no result requires a gradient; that of the reference is zero")
        recorder.ok()
