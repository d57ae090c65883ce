"""Answers the questions of an operator's process, and decides which of its cells pass."""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.code import inputs_of
from opwright.checker.judge import LocalJudge
from opwright.checker.kinds import Kind
from opwright.checker.processes.channel import ForgedMessageError
from opwright.checker.processes.remote_judge import case_of
from opwright.checker.processes.same_samples import excerpt, is_same
from opwright.checker.subject import Subject
from opwright.checker.verdict import Cell, Failure
from opwright.spec import library_at

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.job import Job
    from opwright.spec import Op

# Runtimes whose results the process of the operator compares itself, because they are not results of calls.
_WITHOUT_RESULTS = {"autograd"}
# The number of latest calls whose arguments are kept for repros.
_MOST_SENT = 512
# The operator, the device, and `inputs_of` a call.
_Inputs = tuple[str, str, str]


class Verdicts:
    """The verdicts on the cells of a job. This process never loads the native code that it judges.

    Args:
        job: the cells.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._subjects: dict[tuple[str, str], tuple[Subject, LocalJudge]] = {}
        self._faults: list[Failure] = []
        self._right: Counter[str] = Counter()
        # Keyed by operator, device and placeholder, because calls of two operators may have the same name.
        self._sent: OrderedDict[_Inputs, Case] = OrderedDict()
        self._kept: dict[_Inputs, Case] = {}

    def begin(self) -> None:
        """Start a cell."""
        self._faults, self._right = [], Counter()

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a question; None if it needs none."""
        subject, judge = self._subject(message["op"], message["device"])
        if message["ask"] == "forget":
            judge.forget_name(message["name"])
            return None
        if message["ask"] == "judged":  # in the other process, because the arguments are too large to be sent
            if any(case.name == message["name"] for case in subject.samples):
                msg = f"the results of {message['name']!r} were not sent"
                raise ForgedMessageError(msg)
            self._count(message["name"], Failure.from_json(message["fault"]) if message["fault"] else None)
            return None
        if message["ask"] == "samples":
            return {"is_same": is_same(excerpt(subject.samples), message["samples"])}
        case = self._case(subject, message)
        match message["ask"]:
            case "outline":
                found = judge.outline(case)
                own = pytree.tree_map_only(Tensor, lambda tensor: tensor.to("meta"), found.own)
                return {
                    "refusal": found.refusal,
                    "unknown": found.unknown,
                    "overflows": found.overflows,
                    "is_accurate": found.is_accurate,
                    "is_finite": found.is_finite,
                    "own": own,
                }
            case "fault":
                fault = judge.fault(case, message["results"])
                self._count(case.name, fault)
                return {"fault": None if fault is None else fault.to_json()}
        return {"is_steady": judge.is_steady(case)}

    def verdict(self, cell: Cell) -> Cell:
        """`cell` as its process reports it, or failed if the results that were judged here do not confirm that."""
        if cell.status != "passed":
            return cell
        op, runtime = cell.op.rpartition(":")[2], cell.runtime
        if self._faults:
            return replace(cell, status="failed", failures=(self._faults[0],))
        if runtime in _WITHOUT_RESULTS or self._is_confirmed(op, runtime, cell.device):
            return cell
        got = f"the process reports that {runtime} passed, but it sent no results for the samples"
        return replace(cell, status="failed", failures=(Failure(Kind.CHANNEL, got=got, expected="results"),))

    def judge_first_call(self, message: dict[str, Any]) -> Failure | None:
        """The fault in the results of a first call."""
        subject, judge = self._subject(message["op"], message["device"])
        case = self._case(subject, message)
        fault = None if judge.outline(case).refusal else judge.fault(case, message["results"])
        judge.forget(case)  # a call of the same name in the next process may differ
        return fault

    def keep(self, repro: str) -> None:
        """Keep the calls whose inputs `repro` loads, regardless of the number of later calls."""
        self._kept |= {key: case for key, case in self._sent.items() if repr(key[-1]) in repro}

    def case_named(self, op: str, device: str, inputs: str) -> Case | None:
        """The call whose repro loads `inputs`; None if it is unknown."""
        for known in (self._kept, self._sent):
            if (op, device, inputs) in known:
                return known[op, device, inputs]
        subject, _ = self._subject(op, device)
        claimed = [*subject.samples, *(case for _, case in subject.errors)]
        for case in itertools.chain(claimed, subject.varied, subject.limits(), subject.pairs()):
            if inputs_of(case) == inputs:
                return case
        return None

    def op(self, name: str, device: str) -> Op:
        """The operator with that name."""
        return self._subject(name, device)[0].op

    def fault(self, op: str, device: str, case: Case, results: list[Any]) -> Failure | None:
        """The fault in the results of a call; None if they are correct."""
        return self._subject(op, device)[1].fault(case, results)

    def _subject(self, op: str, device: str) -> tuple[Subject, LocalJudge]:
        if (op, device) not in self._subjects:
            described = library_at(self._job.path).ops[op]
            judge = LocalJudge(described)
            subject = Subject(described, None, device, self._job.options, Path(self._job.work), judge)
            self._subjects[op, device] = subject, judge
        return self._subjects[op, device]

    def _case(self, subject: Subject, message: dict[str, Any]) -> Case:
        """The call of a message. Samples are generated here, not read from the message."""
        for case in subject.samples:
            if case.name == message["name"]:
                return case
        sent = case_of(message)
        if sent is not None:
            self._sent[message["op"], message["device"], inputs_of(sent)] = sent
            if len(self._sent) > _MOST_SENT:
                self._sent.popitem(last=False)
            return sent
        msg = f"the arguments of {message['name']!r} were not sent"
        raise ForgedMessageError(msg)

    def _count(self, name: str, fault: Failure | None) -> None:
        if fault is None:
            self._right[name] += 1
        else:
            self._faults.append(fault)

    def _is_confirmed(self, op: str, runtime: str, device: str) -> bool:
        subject, judge = self._subject(op, device)
        wanted = [case.name for case in subject.samples if not judge.outline(case).refusal]
        if runtime == "eager":
            return all(self._right[name] for name in wanted)
        return bool(self._right) or not wanted
