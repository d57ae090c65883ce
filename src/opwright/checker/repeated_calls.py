"""How an operator conducts itself over many calls: the same answer, from any thread, without memory that grows."""

from __future__ import annotations

import contextlib
import functools
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.case import Case, Family
from opwright.checker.concurrency import run_concurrently
from opwright.checker.kinds import Kind
from opwright.checker.memory import bytes_in_use
from opwright.checker.poison import poisoned
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import described, differs, first_line
from opwright.spec.expected import expected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_CALLERS = 4
# Of threads that are started anew: the system may have some of a group wait for each other all the time.
_GROUPS = 3
_GROUP_SECONDS = 0.4
_LEAST_GROUP_SECONDS = 0.1
_CALLS_EACH = 60  # in a group
_CALLS_IN_A_ROW = 10
_BYTES_IN_A_ROW = 2**26
_SECONDS_IN_A_ROW = 0.02
_SECONDS = 1.0
_REPEATED = 20
_LEAK_CALLS = 400
_LEAK_BYTES = 16  # a call; less is the interpreter's own noise


def check_repetition(subject: Subject, recorder: Recorder) -> None:
    """The same call gives the same again, and a later call leaves earlier results as they were."""
    for case in subject.samples:
        code = subject.code(case)
        if not recorder.begin(f"{case.name}: called again", code):
            continue
        subject.expected(case)  # now: a reference that changes would later give what the operator gives
        with poisoned():
            try:
                first = subject.call(case.fresh())
            except Exception:
                continue
            kept = _copies(first)
            other = _shifted(case.fresh(), 1)
            with contextlib.suppress(Exception):
                subject.call(other)
            if not all(map(_same_numbers, pytree.tree_leaves(first), pytree.tree_leaves(kept))):
                changed = _difference(first, kept) or "other numbers within rounding"
                got = f"after another call, the first one's result reads: {changed}"
                recorder.fail(
                    Failure(Kind.STATE, case.name, f"{code}  # and once more, with other numbers", got, _SAME)
                )
            try:
                again = subject.call(case.fresh())
            except Exception as error:
                recorder.fail(Failure(Kind.STATE, case.name, f"{code}  # twice", first_line(error), _SAME))
                continue
            if (changed := _changed(subject, case, again, kept)) is not None:
                recorder.fail(Failure(Kind.STATE, case.name, f"{code}  # twice", f"the second time: {changed}", _SAME))


_SAME = "the same as the first time"


def check_threads(subject: Subject, recorder: Recorder) -> None:
    """The same from one thread and from many, and with any number of threads inside."""
    if recorder.failed:
        return
    cases = [case for case in (subject.samples[0], _widest(subject, recorder)) if case is not None]
    inside = not subject.options.alone
    for case in {case.name: case for case in cases}.values():
        if inside and recorder.begin(f"{case.name}: with 1 thread and with several", subject.code(case)):
            _check_thread_counts(subject, recorder, case)
        if recorder.begin(f"{case.name}: from {_CALLERS} threads at once", subject.code(case)):
            # One thread in each of them: who waits for threads of his own is not inside, where others could meet him.
            with threads(1):
                _check_callers(subject, recorder, case)


def check_memory_growth(subject: Subject, recorder: Recorder) -> None:
    """Memory in use does not grow with the number of calls."""
    if recorder.failed:
        return
    if bytes_in_use() is None:
        recorder.note("growth of memory was not looked at: this C library does not say what is in use")
        return
    case = subject.samples[0]
    code = subject.code(case)
    if not recorder.begin(f"{case.name}: {_LEAK_CALLS} calls and more", code):
        return
    arguments = case.fresh()
    calls = _calls_in_time(subject, arguments)
    grown = [_growth(subject, arguments, calls) for _ in range(4)][1:]  # the first round warms up caches
    if min(grown) > _LEAK_BYTES * calls:
        got = f"{min(grown) / calls:.0f} bytes more in use after each call, over {len(grown) * calls} calls"
        loop = f"# again and again:\n{code}"
        recorder.fail(Failure(Kind.LEAK, case.name, loop, got, "the same memory in use before and after"))


def check_with_opcheck(subject: Subject, recorder: Recorder) -> None:
    """PyTorch's own test of registrations."""
    if recorder.failed:
        return
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    for case in subject.samples[: 1 if subject.options.quick else 2]:
        call = subject.code(case)
        if not recorder.begin(f"{case.name}: torch.library.opcheck", call):
            continue
        arguments = case.fresh()
        for name in set(subject.floating(case)) & set(subject.op.differentiable):
            for tensor in derive.tensors(arguments[name]):
                tensor.requires_grad_(tensor.is_floating_point())
        positional, keywords = subject.op.spread(arguments)
        try:
            torch.library.opcheck(subject.overload, tuple(positional), keywords, test_utils=tests)
            recorder.ok()
        except Exception as error:
            recorder.fail(
                Failure(Kind.OPCHECK, case.name, call, first_line(error), "no objection", detail=str(error)[:2000])
            )


def _widest(subject: Subject, recorder: Recorder) -> Case | None:
    """The variation with the most elements that is expected to work: work enough for several threads."""
    if subject.options.quick:
        cases = subject.samples
    else:
        cases = [case for case in subject.varied if case.family in (Family.SIZE, Family.TAIL)]
    living = [case for case in cases if not recorder.died_of(case.name)]
    working = [case for case in living if not subject.expected(case).refusal]
    return max(working, key=lambda case: sum(tensor.numel() for tensor in derive.tensors(case.arguments)), default=None)


def _check_thread_counts(subject: Subject, recorder: Recorder, case: Case) -> None:
    several = max(torch.get_num_threads(), 4)
    with contextlib.suppress(Exception):
        with threads(1):
            alone = _copies(subject.call(case.fresh()))
        found: list[str] = []
        for _ in range(_REPEATED):
            with threads(several):
                results = subject.call(case.fresh())
            if (changed := _changed(subject, case, results, alone)) is not None:
                found.append(changed)
        if not found:
            recorder.ok()
            return
        # Always wrong: the parts are put together wrongly. Sometimes wrong: they disturb each other.
        always = len(found) == _REPEATED and len(set(found)) == 1
        kind = Kind.THREADS if always else Kind.RACE
        got = f"with {several} threads, {len(found)} of {_REPEATED} times: {found[0]}"
        lines = subject.code(case).splitlines()
        code = "\n".join([*lines[:-1], f"torch.set_num_threads({several})", lines[-1]])
        recorder.fail(Failure(kind, case.name, code, got, "what one thread gives"))


def _check_callers(subject: Subject, recorder: Recorder, case: Case) -> None:
    """Each caller has numbers of its own: what they share would mix them up."""
    started = time.perf_counter()
    try:
        inputs = [_shifted(case.fresh(), at) for at in range(_CALLERS)]
        alone = [_copies(subject.call(pytree.tree_map_only(Tensor, Tensor.clone, given))) for given in inputs]
    except Exception:
        return
    once = (time.perf_counter() - started) / _CALLERS
    nbytes = sum(tensor.nbytes for tensor in pytree.tree_leaves((inputs[0], alone[0])) if isinstance(tensor, Tensor))
    calls = [Case(f"{case.name}, of caller {at}", case.family, given) for at, given in enumerate(inputs)]
    for call in calls:
        subject.expected(call)  # here: an operator that exists in Python alone is its own reference, and may race too
    in_a_row = max(1, min(_CALLS_IN_A_ROW, _BYTES_IN_A_ROW // max(nbytes, 1), int(_SECONDS_IN_A_ROW / once)))

    def several(at: int) -> str | None:
        # One after the other, compared later: the more of its time a caller is inside, the more of them meet there.
        given = [pytree.tree_map_only(Tensor, Tensor.clone, inputs[at]) for _ in range(in_a_row)]
        try:
            results = [subject.call(arguments) for arguments in given]
            return next(filter(None, (_changed(subject, calls[at], result, alone[at]) for result in results)), None)
        except Exception as error:
            return first_line(error)

    callers = [functools.partial(several, at) for at in range(_CALLERS)]
    # A sanitizer sees two callers only while both are inside: it gets all the time.
    least_s = _GROUP_SECONDS if subject.options.alone else _LEAST_GROUP_SECONDS
    groups = (
        run_concurrently(
            callers,
            times=-(-_CALLS_EACH // in_a_row),
            least_s=least_s,
            most_s=_GROUP_SECONDS,
            # A new thread's first call of a BLAS takes the number of threads that is set in this very thread.
            prepare=functools.partial(torch.set_num_threads, 1),
        )
        for _ in range(_GROUPS)
    )
    found = next(filter(None, groups), None)
    if found is None:
        recorder.ok()
    else:
        code = f"# from {_CALLERS} threads at once, each with numbers of its own:\n{subject.code(case)}"
        recorder.fail(Failure(Kind.RACE, case.name, code, found, "what the same call gives alone"))


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Within it, PyTorch's operators use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _calls_in_time(subject: Subject, arguments: dict[str, Any]) -> int:
    started = time.perf_counter()
    with contextlib.suppress(Exception):
        subject.call(arguments)
    once = time.perf_counter() - started
    return max(10, min(_LEAK_CALLS, int(_SECONDS / max(once, 1e-6))))


def _growth(subject: Subject, arguments: dict[str, Any], calls: int) -> int:
    before = bytes_in_use() or 0
    for _ in range(calls):
        with contextlib.suppress(Exception):
            subject.call(arguments)
    return (bytes_in_use() or 0) - before


def _shifted(arguments: dict[str, Any], by: int) -> dict[str, Any]:
    """The same call with its floating numbers in other places."""

    def shift(tensor: Tensor) -> Tensor:
        return tensor.flatten().roll(by).view(tensor.shape) if tensor.is_floating_point() else tensor

    shifted: dict[str, Any] = pytree.tree_map_only(Tensor, shift, arguments)
    return shifted


def _copies(results: list[Any]) -> list[Any]:
    copies: list[Any] = pytree.tree_map_only(Tensor, Tensor.clone, results)
    return copies


def _changed(subject: Subject, case: Case, results: list[Any], before: list[Any]) -> str | None:
    """How `results` of `case` differ from those of the same call before; None where both are the same or right.

    The same call may round differently: with another number of threads inside, which a BLAS may choose anew in each
    thread, or with atomic additions in another order. So bits are not compared: the oracle says how far off is right.
    """
    found = _difference(results, before)
    if found is None or subject.judge(case, results) is not None:
        return found
    # An operator that exists in Python alone is its own reference: one that changes does not say what is right.
    again = expected(subject.op, case.fresh)
    return None if _difference(list(again.own), list(subject.expected(case).own)) is None else found


def _difference(results: list[Any], before: list[Any]) -> str | None:
    """How `results` differ from what they were by more than rounding; None where they do not."""
    for result, earlier in zip(pytree.tree_leaves(results), pytree.tree_leaves(before), strict=True):
        if earlier is None and result is not None:
            return f"{described(result)} instead of None"
        found = differs(result, earlier, earlier)
        if found is not None:
            return f"{found.got} instead of {found.expected}"
    return None


def _same_numbers(result: Any, earlier: Any) -> bool:
    """Whether a result still holds the very numbers that it held."""
    if not isinstance(result, Tensor):
        return bool(result == earlier)
    if torch.equal(result, earlier):
        return True  # that calls no NaN equal
    return bool(((result == earlier) | (result.isnan() & earlier.isnan())).all())
