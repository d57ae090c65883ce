"""Checks operators in autograd, with a kernel that differs from the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from opwright.checker.recorder import Recorder
from opwright.checker.runtimes import autograd
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.verdict import Cell


class Judge(Protocol):
    """Checks an operator in autograd whose kernel is a Python function, and returns the cell.

    The reference and the samples are Python expressions.
    """

    def __call__(
        self,
        reference: str,
        samples: str,
        kernel: Callable[..., Any] | None = None,
        *,
        parameters: str = "x: Tensor",
        results: str = "Tensor",
        quick: bool = True,
        seed: int = 0,
        further: str = "",
    ) -> Cell: ...


@pytest.fixture(scope="session")
def judge(make_subject: MakeSubject) -> Judge:
    def judge(
        reference: str,
        samples: str,
        kernel: Callable[..., Any] | None = None,
        *,
        parameters: str = "x: Tensor",
        results: str = "Tensor",
        quick: bool = True,
        seed: int = 0,
        further: str = "",
    ) -> Cell:
        text = operator(parameters, reference, samples, results=results)
        subject = make_subject(text + further, quick=quick, seed=seed)
        if kernel is not None:
            subject.overload = kernel
        recorder = Recorder("f", "autograd", "cpu", lambda event: None)
        assert autograd.why_not(subject) == ""
        autograd.run(subject, recorder)
        return recorder.cell()

    return judge
