"""The judge at the other end of a channel gives the same answers as one in the same process."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import samples
from opwright.checker.judge import LocalJudge
from opwright.checker.processes import remote_judge
from opwright.checker.processes.channel import Channel
from opwright.checker.processes.remote_judge import Line, RemoteJudge
from opwright.checker.processes.verdicts import Verdicts
from tests.unit.checker.conftest import MakeSubject, job_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opwright.checker.job import Job
    from opwright.spec import Op
    from tests.unit.conftest import Describe

DOUBLED = """
calls = []
@library.op
def f(x: Tensor) -> tuple[Tensor, Tensor]:
    if x.dim() > 2:
        raise ValueError("x must have at most two dimensions")
    calls.append(1)
    return 2 * x, x.bool().sum()

@f.samples
def _(make):
    yield make.randn(3, 4)
"""


class Both:
    """The same judge here and at the other end of a channel, and the number of questions that it received there."""

    def __init__(self, job: Job, op: Op, local: LocalJudge) -> None:
        near, far = (Channel(end, "key") for end in socket.socketpair())
        self.line, self.op = Line(near), op
        self.remote, self.local = RemoteJudge(self.line, op, "cpu"), local
        self.asked: list[str] = []
        self._near, self._far = near, far
        self._thread = threading.Thread(target=self._serve, args=(Verdicts(job),))
        self._thread.start()

    def _serve(self, verdicts: Verdicts) -> None:
        try:
            while (message := self._far.receive()) is not None:
                self.asked.append(message["ask"])
                if (answer := verdicts.answer(message)) is not None:
                    self._far.send(answer)
        finally:
            self._far.close()  # after an error too, so that no thread waits for an answer

    def close(self) -> None:
        self._near.close()
        self._thread.join()


@pytest.fixture
def both(describe: Describe, tmp_path: Path) -> Iterator[Both]:
    library = describe(DOUBLED)
    made = Both(job_of(library, [("f", "eager")], tmp_path), library.ops["f"], LocalJudge(library.ops["f"]))
    yield made
    made.close()


def case(*shape: int) -> Case:
    return Case(f"a tensor of {shape}", Family.RANK, {"x": torch.ones(shape)})


@pytest.mark.parametrize("shape", [(3, 4), (0,), (), (2, 2, 2)])
def test_an_outline_is_the_same_at_both_ends(both: Both, shape: tuple[int, ...]) -> None:
    here, there = both.local.outline(case(*shape)), both.remote.outline(case(*shape))
    assert there.refusal == here.refusal
    assert (there.unknown, there.is_accurate, there.is_finite) == (here.unknown, here.is_accurate, here.is_finite)
    assert [(one.shape, one.dtype, one.device) for one in there.own] == [
        (one.shape, one.dtype, one.device) for one in here.own
    ]


def test_a_fault_is_the_same_at_both_ends(both: Both) -> None:
    given = case(3, 4)
    for results in ([torch.full((3, 4), 2.0), torch.tensor(12)], [torch.full((3, 4), 3.0), torch.tensor(12)]):
        assert both.remote.fault(given, results) == both.local.fault(given, results)
    assert both.remote.fault(given, [torch.full((3, 4), 3.0), torch.tensor(12)]) is not None
    assert both.remote.is_steady(given)


def test_an_outline_is_requested_once_until_it_is_forgotten(both: Both) -> None:
    both.remote.outline(case(2))
    both.remote.outline(case(2))
    assert both.asked == ["outline"]
    both.remote.forget(case(2))
    both.remote.outline(case(2))
    assert both.asked == ["outline", "forget", "outline"]


def test_a_call_that_is_too_large_to_send_is_judged_here_and_counted_by_the_judge(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_judge, "_MOST_BYTES", 16)
    given = case(3, 4)
    assert both.remote.fault(given, [torch.full((3, 4), 2.0), torch.tensor(12)]) is None
    both.remote.is_steady(case(2))
    assert both.asked == ["judged", "is_steady"]


def test_only_the_judges_own_samples_are_accepted(both: Both) -> None:
    (drawn,) = samples(both.op, "cpu", seed=0)
    assert both.remote.has_samples([drawn])
    assert not both.remote.has_samples([drawn, drawn])
    assert not both.remote.has_samples(samples(both.op, "cpu", seed=1))


def test_each_thread_receives_the_answers_to_its_own_questions(both: Both) -> None:
    sizes = range(1, 25)
    found: dict[int, tuple[int, ...]] = {}

    def ask(size: int) -> None:
        found[size] = tuple(both.remote.outline(case(size)).own[0].shape)

    asking = [threading.Thread(target=ask, args=(size,)) for size in sizes]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert found == {size: (size,) for size in sizes}


def test_a_process_exits_when_its_judge_has_exited(make_subject: MakeSubject) -> None:
    near, far = socket.socketpair()
    far.close()
    judge = RemoteJudge(Line(_Silent(near, "key")), make_subject(DOUBLED).op, "cpu")
    with pytest.raises(SystemExit) as ended:
        judge.outline(case(2))
    near.close()
    assert ended.value.code == 1


class _Silent(Channel):
    """An end of a channel that discards messages."""

    def send(self, message: object) -> None:
        """Discard the message, because the judge has exited."""
