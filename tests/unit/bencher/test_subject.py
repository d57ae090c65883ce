from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.utils import _pytree as pytree

from opwright.bencher.rows import Prepared
from opwright.bencher.stopping import RoundsRule
from opwright.bencher.timer import measure
from opwright.errors import SpecError
from opwright.spec import derive
from tests.unit.bencher.conftest import GROWN

if TYPE_CHECKING:
    from opwright.bencher.result import Direction
    from opwright.bencher.subject import Subject
    from tests.unit.bencher.conftest import MakeSubject

MIXED = """
@library.op(differentiable=("x", "parts"))
def mixed(x: Tensor, places: Tensor, parts: Sequence[Tensor], y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x[places] * y + parts[0], places + 1, (x * parts[1]).sum()

@mixed.sweep
def _(make):
    yield "four", (make.randn(4), make.randint(0, 4, 3), [make.randn(3), make.randn(4)], make.randn(3))
"""
NESTED = """
@library.op
def nested(x: Tensor) -> tuple[list[Tensor], Tensor]:
    return [x + 1, x * 2], x.argmax()

@nested.samples
def _(make):
    yield make.randn(4)
"""


def once(subject: Subject, direction: Direction) -> Any:
    row = subject.row(subject.op.reference, direction)
    return row.call(row.before()) if isinstance(row, Prepared) else row()


def test_only_differentiable_arguments_have_a_timed_gradient(make_subject: MakeSubject) -> None:
    subject = make_subject(MIXED)
    given = subject.gradients
    assert given.exist
    assert given.names == ("x", "parts")
    assert [tuple(leaf.shape) for leaf in given.leaves] == [(4,), (3,), (4,)]
    assert [grad is None for grad in given.grads] == [False, True, False]
    assert [tuple(grad.shape) for grad in given.incoming] == [(3,), ()]
    assert not any(tensor.requires_grad for tensor in derive.tensors(subject.arguments))


@pytest.mark.parametrize("text", [MIXED, NESTED])
def test_backward_and_both_compute_the_gradients_of_the_reference(make_subject: MakeSubject, text: str) -> None:
    subject = make_subject(text)
    given = subject.gradients
    expected = derive.reference_gradients(subject.op, subject.arguments, given.grads, given.names)
    for direction in ("backward", "both"):
        found = once(subject, direction)
        for one, other in zip(found, pytree.tree_leaves(list(expected.values())), strict=True):
            assert torch.equal(one, other)


def test_each_backward_has_its_own_forward(make_subject: MakeSubject) -> None:
    subject = make_subject(MIXED)
    timings = measure({"backward": subject.row(subject.op.reference, "backward")}, rule=RoundsRule(2))
    assert len(timings["backward"].times) == 2


def test_a_recorded_forward_requires_grad_and_a_plain_one_does_not(make_subject: MakeSubject) -> None:
    subject = make_subject(MIXED)
    assert once(subject, "recorded")[0].requires_grad
    assert not once(subject, "forward")[0].requires_grad


def test_mutated_arguments_are_recreated_for_each_call(make_subject: MakeSubject) -> None:
    subject = make_subject(GROWN)
    before = subject.arguments["x"].clone()
    for _ in range(3):
        once(subject, "forward")
    assert torch.equal(subject.arguments["x"], before)
    assert not subject.gradients.exist


def test_fresh_arguments_keep_the_strides(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def f(x: Tensor) -> Tensor:
    return x + 1

@f.samples
def _(make):
    yield make.randn(4, 6).t()[1:]
""")
    fresh, first = subject.fresh()["x"], subject.arguments["x"]
    assert torch.equal(fresh, first)
    assert (fresh.stride(), fresh.storage_offset()) == (first.stride(), first.storage_offset())
    assert fresh.data_ptr() != first.data_ptr()


def test_a_size_outside_the_domain_is_not_timed(make_subject: MakeSubject) -> None:
    text = NESTED + "@nested.domain\ndef _(x):\n    return len(x) > 4\n"
    with pytest.raises(
        SpecError, match=r"'sample 1' of .*::nested is outside its domain: its @domain function returns"
    ):
        make_subject(text)
