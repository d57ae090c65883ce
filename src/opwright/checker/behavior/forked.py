"""Checks calls in a forked process, as in a worker of PyTorch's DataLoader."""

from __future__ import annotations

import io
import multiprocessing
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.behavior.same_call import changed_answer, copies
from opwright.checker.behavior.thread_count import threads
from opwright.checker.behavior.widest import widest, widest_variation
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# A call that takes longer in the forked process hangs. The second limit counts the parent's calls, for busy machines.
_LONGEST_S = 30.0
_LONGEST_IN_CALLS = 200


def check_forked(subject: Subject, recorder: Recorder) -> None:
    """Check that a process forked after calls of the operator can call it too, with the same results.

    A forked process has none of its parent's threads, and inherits the state of locks. Its number of PyTorch threads is
    set to 1, as in a worker of a DataLoader.
    """
    if recorder.failed or recorder.has_died or not _is_supported(subject):
        return
    largest = widest_variation(subject, recorder) or widest(subject.samples, subject, recorder)
    cases = [case for case in (subject.samples[0], largest) if case is not None]
    for case in {case.name: case for case in cases}.values():
        code = _code(subject, case)
        if recorder.begin(f"{case.name}: in a forked process", code, Kind.FORKED, case.group):
            if (got := _fault(subject, case)) is None:
                recorder.ok()
            else:
                wanted = "the result of the same call in its parent"
                recorder.fail(Failure(Kind.FORKED, case.name, code, got, wanted))
                return


def _is_supported(subject: Subject) -> bool:
    """Whether forked processes may call the operator: CUDA and ThreadSanitizer do not support them."""
    native = subject.path is not None and subject.device == "cpu"
    return native and sys.platform == "linux" and not subject.options.alone


def _fault(subject: Subject, case: Case) -> str | None:
    """Return what is wrong with the call in a forked process; None if nothing is."""
    try:
        subject.call(case.fresh())  # with several threads, which a forked process does not inherit
        started = time.perf_counter()
        with threads(1):
            alone = copies(subject.call(case.fresh()))
        once = time.perf_counter() - started
    except Exception:
        return None  # other steps report it
    arguments = case.fresh()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(subject, arguments, sender), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(_LONGEST_S + once * _LONGEST_IN_CALLS):
            return "the call did not return"
        content = receiver.recv_bytes()
    except EOFError:
        process.join()
        return f"the process exited during the call, with exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()
        receiver.close()
    received = torch.load(io.BytesIO(content), weights_only=True)
    error: str = received["error"]
    return error or changed_answer(subject, case, received["results"], alone)


def _call(subject: Subject, arguments: dict[str, Any], sender: Connection) -> None:
    """Call the operator in the forked process, and send its results."""
    torch.set_num_threads(1)
    message: dict[str, Any] = {"error": "", "results": []}
    try:
        message["results"] = copies(subject.call(arguments))
    except Exception as error:
        message["error"] = first_line(error)
    file = io.BytesIO()
    torch.save(message, file)
    sender.send_bytes(file.getvalue())


def _code(subject: Subject, case: Case) -> str:
    """The repro of a call in a forked process."""
    *lines, call = subject.code(case).splitlines()
    forked = ["torch.set_num_threads(1)", "if os.fork() == 0:", f"    {call}", "    os._exit(0)", "os.wait()"]
    return "\n".join(["import os", *lines, call, *forked])
