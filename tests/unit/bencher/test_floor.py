from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from opwright.bencher.contents import Contents
from opwright.bencher.floor import bytes_of, floor_of
from tests.unit.bencher.conftest import draws_of

if TYPE_CHECKING:
    from tests.unit.bencher.conftest import MakeSubject

ADDED = """
@library.op
def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y

@added.sweep(gradients=("x",))
def _(make):
    yield "thousand", (make.randn(10, 100), make.randn(100).expand(10, 100))
"""
FLOORS = """
calls = []

@added.floor("the bare sum")
def _(x, y):
    calls.append(("forward", x.data_ptr(), x.requires_grad))

@added.floor("nothing at all", direction="backward")
def _(x, y):
    calls.append(("backward", x.data_ptr(), x.requires_grad))
"""


def test_bytes_include_arguments_results_and_gradients(make_subject: MakeSubject) -> None:
    subject = make_subject(ADDED)
    # An expanded tensor counts only its memory.
    forward = 4 * (1000 + 100 + 1000)
    backward = 4 * (1000 + 1000 + 100 + 1000)
    assert bytes_of(subject, "forward") == bytes_of(subject, "recorded") == forward
    assert bytes_of(subject, "backward") == backward
    assert bytes_of(subject, "both") == forward + backward


def test_the_default_floor_copies_the_same_number_of_bytes(make_subject: MakeSubject) -> None:
    subject = make_subject(ADDED)
    contents = Contents(subject, draws_of(subject))
    floor = floor_of(contents, "forward")
    assert (floor.what, floor.is_stated) == ("a copy that moves 8.20 KiB", False)
    calls = [call for call in floor.row.sets if callable(call)]
    assert len(calls) == len(contents.subjects)
    copied: Any = calls[0]()
    assert (copied.dtype, copied.numel()) == (torch.uint8, bytes_of(subject, "forward") // 2)
    assert floor_of(contents, "both").what == "a copy that moves 8.20 KiB and a copy that moves 12.1 KiB"


def test_a_floor_from_op_py_receives_the_arguments_of_each_set(make_subject: MakeSubject) -> None:
    subject = make_subject(ADDED + FLOORS)
    contents = Contents(subject, draws_of(subject))
    calls = subject.op.reference.__globals__["calls"]
    for direction, words in (
        ("forward", "the bare sum"),
        ("recorded", "the bare sum"),
        ("backward", "nothing at all"),
        ("both", "the bare sum and nothing at all"),
    ):
        floor = floor_of(contents, direction)  # type: ignore[arg-type]
        assert (floor.what, floor.is_stated) == (words, True)
        for call in floor.row.sets:
            assert callable(call)
            call()
    x, *_ = (one.arguments["x"] for one in contents.subjects)
    assert calls[0] == ("forward", x.data_ptr(), False)
    parts = [["forward"], ["forward"], ["backward"], ["forward", "backward"]]
    assert [part for part, *_ in calls] == [part for some in parts for part in some * len(contents.subjects)]
