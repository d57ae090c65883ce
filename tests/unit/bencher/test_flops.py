from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.bencher.flops import flops_of
from tests.unit.bencher.conftest import PROJECTED

if TYPE_CHECKING:
    from tests.unit.bencher.conftest import MakeSubject


def test_the_matrix_products_of_the_reference_are_counted(make_subject: MakeSubject) -> None:
    subject = make_subject(PROJECTED.replace("x @ weights", "torch.tanh(x @ weights)"))
    forward, backward = 2 * 4 * 8 * 16, 2 * 2 * 4 * 8 * 16
    assert flops_of(subject, "forward") == flops_of(subject, "recorded") == forward
    assert flops_of(subject, "backward") == backward
    assert flops_of(subject, "both") == forward + backward


def test_elementwise_operations_are_not_counted(make_subject: MakeSubject) -> None:
    subject = make_subject(PROJECTED.replace("x @ weights", "x[0, 0] * weights"))
    assert flops_of(subject, "both") == 0
