from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases import large
from opwright.checker.cases.launch_sizes import launch_sizes
from opwright.checker.cases.sizes import Resizer, size_slots
from tests.unit.checker.cases.conftest import SMALLEST_LAST, shapes
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.subject import Subject

TWO_SIZES = operator("x: Tensor", "2 * x", "make.randn(make.size(6), make.size(40))")
SUMMED = TWO_SIZES.replace("2 * x", "x.sum(1)")


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_the_sizes_are_odd_and_just_beyond_each_limit(itemsize: int) -> None:
    sizes = launch_sizes(itemsize)
    assert all(size % 2 for size in sizes)
    limits = (1024, 65535, 48 * 1024 // itemsize, 227 * 1024 // itemsize)
    assert all(any(limit < size <= limit + 2 for size in sizes) for limit in limits)


def test_the_other_sizes_are_small_while_one_is_beyond_a_limit(make_subject: MakeSubject) -> None:
    subject = make_subject(TWO_SIZES)
    resizer = Resizer(subject.op, subject.samples, "cpu", subject.options)
    found = [shape for case in resizer.beyond_launches(0) for shape in shapes(case)]
    assert {(65537, 2), (2, 65537), (1025, 2), (2, 58113), (12289, 2)} <= set(found)
    assert all(min(shape) == 2 for shape in found)


def test_a_single_size_is_recorded_so_that_its_faults_are_grouped(make_subject: MakeSubject) -> None:
    subject = make_subject(SMALLEST_LAST.replace("make.randn(12, 5)", "make.randn(make.size(12))"))
    resizer = Resizer(subject.op, subject.samples, "cpu", subject.options)
    assert ("sample 1, size 1", 1025) in [case.size for case in resizer.beyond_launches(0)]


def sized(subject: Subject, slot: int) -> tuple[int, bool]:
    """The size that makes a call large on a GPU, and whether its results grow with it."""
    found = size_slots(subject.op, "cpu", 0)[slot]
    size = large._size_that_is_large(subject.op, 0, found, torch.float32, "cuda")
    assert size is not None
    return size, large._do_results_grow(subject.op, 0, found, torch.float32, size)


def test_on_a_gpu_a_large_call_has_more_than_2_to_the_31_elements(make_subject: MakeSubject) -> None:
    assert sized(make_subject(TWO_SIZES), 0) == (2**31 // 40 + 1, True)


def test_a_sum_over_more_than_2_to_the_31_elements_is_skipped(make_subject: MakeSubject) -> None:
    subject = make_subject(SUMMED)
    assert sized(subject, 0)[1]
    assert not sized(subject, 1)[1]
