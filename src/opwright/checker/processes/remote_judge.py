"""The judge as seen by the process of an operator, which reaches it through the channel."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, Family, is_far
from opwright.checker.judge import LocalJudge, Outline
from opwright.checker.processes.same_samples import excerpt
from opwright.checker.verdict import Failure
from opwright.spec import derive

if TYPE_CHECKING:
    from opwright.checker.processes.channel import Channel
    from opwright.spec import Op

# Larger calls are judged in this process, because there may not be enough memory for a second copy.
_MOST_BYTES = 2**26
_SAMPLE = re.compile(r"sample \d+")


class Line:
    """The channel for all threads of the process: one message, or one question with its answer, at a time.

    Args:
        channel: the channel.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message."""
        with self._lock:
            self._channel.send(message)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a question, and wait for the answer."""
        with self._lock:
            self._channel.send(message)
            answer = self._channel.receive()
        if answer is None:
            raise SystemExit(1)  # the judge has ended, and the check with it
        return answer


class RemoteJudge:
    """The judge of one operator, at the other end of the channel.

    Args:
        line: the channel.
        op: the operator.
        device: `cpu` or `cuda`.
    """

    def __init__(self, line: Line, op: Op, device: str) -> None:
        self._line = line
        self._subject = {"op": op.name, "device": device}
        self._here = LocalJudge(op)
        self._outlines: dict[str, Outline] = {}

    def outline(self, case: Case) -> Outline:
        """The expected results of a call, without their numbers."""
        if is_large(case):
            return self._here.outline(case)
        if case.name not in self._outlines:
            answer = self._line.ask({"ask": "outline", **self._subject, **case_message(case)})
            own = pytree.tree_map_only(Tensor, self._empty, answer.pop("own"))
            self._outlines[case.name] = Outline(**answer, own=own)
        return self._outlines[case.name]

    def fault(self, case: Case, results: list[Any]) -> Failure | None:
        """The fault in the results of a call; None if they are correct."""
        if is_large(case):
            found = self._here.fault(case, results)
            fault = None if found is None else found.to_json()
            self._line.tell({"ask": "judged", **self._subject, "name": case.name, "fault": fault})
            return found
        answer = self._line.ask({"ask": "fault", **self._subject, **case_message(case), "results": results})
        return Failure.from_json(answer["fault"]) if answer["fault"] else None

    def is_steady(self, case: Case) -> bool:
        """Whether the reference returns the same results when called again."""
        if is_large(case):
            return self._here.is_steady(case)
        return bool(self._line.ask({"ask": "is_steady", **self._subject, **case_message(case)})["is_steady"])

    def forget(self, case: Case) -> None:
        """Free the stored results of a call."""
        self._outlines.pop(case.name, None)
        self._here.forget(case)
        self._line.tell({"ask": "forget", **self._subject, "name": case.name})

    def has_samples(self, cases: list[Case]) -> bool:
        """Whether the judge draws the same samples."""
        return bool(self._line.ask({"ask": "samples", **self._subject, "samples": excerpt(cases)})["is_same"])

    def _empty(self, tensor: Tensor) -> Tensor:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=self._subject["device"])


def is_large(case: Case) -> bool:
    """Whether the arguments of a call are too large to be sent. The judge generates those of samples itself."""
    return not can_be_sent(case.arguments) and not _SAMPLE.fullmatch(case.name)


def case_message(case: Case) -> dict[str, Any]:
    """A call as a message, without its arguments if they are too large."""
    given = {"arguments": case.arguments} if can_be_sent(case.arguments) else {}
    return {"name": case.name, "family": case.family.name, "claimed": case.claimed, **given}


def can_be_sent(values: Any) -> bool:
    """Whether the tensors in arguments or results are small enough to be sent."""
    tensors = [tensor for tensor in derive.tensors(values) if not tensor.is_meta]
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors) <= _MOST_BYTES and not any(map(is_far, tensors))


def case_of(message: dict[str, Any]) -> Case | None:
    """The call of a message; None if its arguments are missing."""
    if "arguments" not in message:
        return None
    return Case(message["name"], Family[message["family"]], message["arguments"], claimed=message["claimed"])
