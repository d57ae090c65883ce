from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.bencher.contents import Contents
from tests.unit.bencher.conftest import draws_of

if TYPE_CHECKING:
    from opwright.bencher.subject import Subject
    from tests.unit.bencher.conftest import MakeSubject

OP = """
@library.op
def f(x: Tensor, y: Tensor) -> Tensor:
    return x * y

@f.sweep
def _(make):
    {body}
"""


def contents_of(make_subject: MakeSubject, body: str) -> Contents:
    subject = make_subject(OP.replace("{body}", body))
    return Contents(subject, draws_of(subject))


def copies(subjects: list[Subject], name: str) -> list[torch.Tensor]:
    return [one.arguments[name].clone() for one in subjects]


def test_the_sets_have_different_contents_in_separate_memory(make_subject: MakeSubject) -> None:
    contents = contents_of(make_subject, 'yield "100", (make.randn(100), make.randn(100))')
    assert len(contents.subjects) == 32
    for name in ("x", "y"):
        found = [one.arguments[name] for one in contents.subjects]
        assert len({tensor.data_ptr() for tensor in found}) == len({tuple(tensor.tolist()) for tensor in found}) == 32
    assert contents.fixed == ""


def test_large_arguments_have_few_sets(make_subject: MakeSubject) -> None:
    sizes = [
        len(contents_of(make_subject, f'yield "n", (make.randn({count}), make.randn(1))').subjects)
        for count in (2**17, 2**20, 2**23)
    ]
    assert sizes == [4, 4, 2]


def test_renewing_changes_the_contents_in_place(make_subject: MakeSubject) -> None:
    contents = contents_of(make_subject, 'yield "100", (make.randn(100), make.randint(0, 2**40, 100).t())')
    subjects = contents.subjects
    places = [one.arguments["x"].data_ptr() for one in subjects]
    seen: set[tuple[float, ...]] = set()
    for _ in range(20):
        before = {name: copies(subjects, name) for name in ("x", "y")}
        contents.renew()
        for name in ("x", "y"):
            for one, was in zip(subjects, before[name], strict=True):
                assert not torch.equal(one.arguments[name], was)
            # Elements only moved between sets: each remains a number that the author's code drew.
            assert torch.equal(
                torch.stack(copies(subjects, name)).sort(0).values, torch.stack(before[name]).sort(0).values
            )
        seen |= {tuple(one.arguments["x"].tolist()) for one in subjects}
    # Sets do not just exchange their contents as a whole.
    assert len(seen) > 100
    assert places == [one.arguments["x"].data_ptr() for one in subjects]


def test_recorded_arguments_share_the_renewed_memory(make_subject: MakeSubject) -> None:
    contents = contents_of(make_subject, 'yield "100", (make.randn(100), make.randn(100))')
    one = contents.subjects[3]
    grad = one.gradients.incoming[0].clone()
    contents.renew()
    for name in ("x", "y"):
        assert one.gradients.arguments[name].requires_grad
        assert torch.equal(one.gradients.arguments[name], one.arguments[name])
    assert not torch.equal(one.gradients.incoming[0], grad)


def test_arguments_that_belong_together_are_redrawn_and_stay_together(make_subject: MakeSubject) -> None:
    contents = contents_of(make_subject, 'x = make.randn(100)\n    yield "100", (x, x.sum())')
    first = {tuple(tensor.tolist()) for tensor in copies(contents.subjects, "x")}
    for _ in range(4):
        before = copies(contents.subjects, "x")
        contents.renew()
        for one, was in zip(contents.subjects, before, strict=True):
            assert not torch.equal(one.arguments["x"], was)
            assert torch.equal(one.arguments["x"].sum(), one.arguments["y"])
        assert not {tuple(tensor.tolist()) for tensor in copies(contents.subjects, "x")} <= first


def test_large_constants_are_rotated_and_small_ones_are_not(make_subject: MakeSubject) -> None:
    contents = contents_of(make_subject, 'yield "100", (torch.arange(100.0), torch.eye(10)[:, :1])')
    assert contents.fixed == ""
    seen = set()
    for _ in range(3):
        contents.renew()
        seen |= {tuple(tensor.tolist()) for tensor in copies(contents.subjects, "x")}
    assert len(seen) > 32
    assert all(0 <= number < 100 for numbers in seen for number in numbers)
    small = contents_of(make_subject, 'yield "9", (torch.arange(9.0), torch.arange(900).view(100, 9))')
    assert small.fixed == "it has no random argument"
    small.renew()
    assert torch.equal(small.subjects[5].arguments["x"], torch.arange(9.0))


def test_constants_that_the_reference_rejects_in_another_order_are_not_rotated(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def f(x: Tensor) -> Tensor:
    if bool((x.diff() < 0).any()):
        raise ValueError("sort it first")
    return x + 1

@f.samples
def _(make):
    yield torch.arange(100.0)
""")
    contents = Contents(subject, draws_of(subject))
    assert contents.fixed == "it has no random argument, and the reference rejects others: ValueError: sort it first"
    contents.renew()
    assert all(torch.equal(one, torch.arange(100.0)) for one in copies(contents.subjects, "x"))


def test_contents_whose_layout_depends_on_the_seed_do_not_change(make_subject: MakeSubject) -> None:
    contents = contents_of(make_subject, 'x = make.randn(50)\n    yield "some", (x[x > 0], make.randn(1))')
    assert contents.fixed == "its shapes or numbers depend on the seed"
    contents.renew()
    first, *others = copies(contents.subjects, "x")
    assert all(torch.equal(one, first) for one in others)


def test_contents_that_a_call_overwrote_are_redrawn(make_subject: MakeSubject) -> None:
    for body in (
        'yield "100", (make.randn(100), make.randn(100))',
        'x = make.randn(100)\n    yield "100", (x, x.sum())',
        'yield "100", (torch.arange(1.0, 101.0), torch.ones(1))',
    ):
        contents = contents_of(make_subject, body)
        contents.renew()
        before = copies(contents.subjects, "x")
        contents.restore()
        assert all(map(torch.equal, before, copies(contents.subjects, "x")))
        for one in contents.subjects:
            one.arguments["x"].zero_()
        contents.restore()
        found = copies(contents.subjects, "x")
        assert all(bool(tensor.all()) for tensor in found)
        assert len({tuple(tensor.tolist()) for tensor in found}) > 16
