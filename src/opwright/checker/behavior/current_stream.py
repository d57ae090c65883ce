"""Checks that a call runs on PyTorch's current stream, after the work before it and before the work after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.behavior.gpu_code import late_stream_code
from opwright.checker.behavior.late_arrival import on_late_stream
from opwright.checker.behavior.same_call import is_right_alone
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# Each case takes tens of milliseconds.
_MOST_CASES = 3


def check_current_stream(subject: Subject, recorder: Recorder) -> None:
    """Call the operator on a stream on which its arguments arrive late, and read its results there."""
    if subject.device != "cuda":
        return
    for case in subject.samples[:_MOST_CASES]:
        *lines, call = subject.code(case).splitlines()
        code = late_stream_code(lines, call, case)
        step = f"{case.name}: on a stream on which its arguments arrive late"
        if not recorder.begin(step, code) or not is_right_alone(subject, case):
            continue  # other steps report a call that is wrong by itself
        arguments = case.fresh()
        try:
            fault = subject.judge(case, on_late_stream(lambda given=arguments: subject.enqueue(given), arguments))  # type: ignore[misc]
        except Exception as error:
            recorder.fail(Failure(Kind.STREAM, step, code, first_line(error), "a result, as on the default stream"))
            continue
        if fault is None:
            recorder.ok()
        else:
            recorder.fail(Failure(Kind.STREAM, step, code, fault.got, f"{fault.expected}, as on the default stream"))
