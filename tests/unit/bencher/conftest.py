"""Operators at one size, as in a bench."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from opwright.bencher.draws import Draws
from opwright.bencher.subject import Subject
from opwright.loader.open import open_library
from opwright.spec import Make

if TYPE_CHECKING:
    from tests.unit.conftest import Describe

GROWN = """
@library.op(mutates=("x",))
def grown(x: Tensor, by: float = 2.0) -> None:
    x.add_(by)

@grown.samples
def _(make):
    yield (make.randn(100),)
"""
PROJECTED = """
@library.op
def projected(x: Tensor, weights: Tensor) -> Tensor:
    return x @ weights

@projected.samples
def _(make):
    yield make.randn(4, 8), make.randn(8, 16)
"""


def draws_of(subject: Subject) -> Draws:
    """Draws the arguments of the first size."""
    return Draws(subject.op, 0, lambda seed: Make(seed=seed))


class MakeSubject(Protocol):
    """Describes an operator, registers it with PyTorch, and returns its subject at the first size."""

    def __call__(self, text: str) -> Subject: ...


@pytest.fixture(scope="session")
def make_subject(describe: Describe) -> MakeSubject:
    def make_subject(text: str) -> Subject:
        library = describe(text)
        open_library(library)
        op = next(iter(library.ops.values()))
        return Subject(op, next(op.sizes(Make())), "cpu", seed=0)

    return make_subject
