"""The faults that a check finds in an operator's own rule for `torch.vmap`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.runtimes import vmap
from tests.unit.checker.conftest import MakeSubject, recorder_of_steps

if TYPE_CHECKING:
    from opwright.checker.verdict import Cell

OPERATOR = """
@library.op(vmap=True)
def f(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x * y + z

@f.samples
def _(make):
    yield make.randn(4, 6), make.randn(4, 6), make.randn(4, 6)
"""
EQUAL = "x = make.randn(4, 6)\n    yield x, x.clone()"
RULE = """
@f.vmap
def _(info, in_dims, x, y, z):
    {first}
    moved = [
        one.movedim(at, 0) if at is not None else one.expand(info.batch_size, *one.shape)
        for one, at in zip((x, y, z), in_dims)
    ]
    return getattr(torch.ops, library.namespace).f(*moved), 0
"""


def cell(make_subject: MakeSubject, text: str, *, quick: bool = False) -> tuple[Cell, list[str]]:
    subject = make_subject(text, quick=quick)
    assert vmap.why_not(subject) == ""
    recorder, steps = recorder_of_steps("vmap")
    vmap.run(subject, recorder)
    return recorder.cell(), steps


def rule(first: str = "pass") -> str:
    return OPERATOR + RULE.format(first=first)


def test_a_correct_rule_passes(make_subject: MakeSubject) -> None:
    passed, steps = cell(make_subject, rule())
    assert passed.failures == ()
    assert "sample 1, vmap of vmap" in steps
    assert "sample 1, a batch of one" in steps


@pytest.mark.parametrize(
    ("wrong", "step"),
    [
        ("in_dims = (in_dims[0], in_dims[1], 0 if in_dims[2] == 1 else in_dims[2])", "z in dimension 1"),
        ("y = y.flip(0) if in_dims[1] is None else y", "all calls share y"),
        ("in_dims = in_dims[:2] + (0,) if in_dims == (None, 1, 2) else in_dims", "all calls share x, y in dim"),
    ],
)
def test_a_rule_that_is_wrong_for_some_dimensions_is_found(make_subject: MakeSubject, wrong: str, step: str) -> None:
    failed, _ = cell(make_subject, rule(wrong))
    assert failed.status == "failed"
    assert {failure.kind for failure in failed.failures} <= {Kind.WRONG_RESULT, Kind.RESULT_TYPE, Kind.RUNTIME}
    assert step in failed.failures[0].case


def test_samples_whose_shapes_depend_on_the_seed_are_batched_with_themselves(make_subject: MakeSubject) -> None:
    text = rule().replace("yield", "n = int(make.randint(2, 99, 1))\n    yield").replace("randn(4, 6)", "randn(n, 6)")
    passed, steps = cell(make_subject, text)
    assert passed.failures == ()
    assert "sample 1, batches in front" in steps


def test_tensors_of_different_calls_that_the_reference_rejects_are_not_batched(make_subject: MakeSubject) -> None:
    checks = "if bool((x != y).any()):\n        raise ValueError('x and y must be equal')\n    return x * y + z"
    text = rule().replace("return x * y + z", checks).replace("yield make.randn(4, 6), make.randn(4, 6)", EQUAL)
    passed, steps = cell(make_subject, text)
    assert passed.failures == ()
    assert "sample 1, batches in front" in steps
    assert not [step for step in steps if "all calls share x, y in front" in step]


def test_a_rule_that_is_wrong_for_one_call_is_found(make_subject: MakeSubject) -> None:
    failed, _ = cell(make_subject, rule("z = z + (info.batch_size == 1)"))
    assert failed.failures[0].case == "sample 1, a batch of one: call 0 of 1"


ALONG = """
@library.op(vmap=True)
def f(x: Tensor, dim: int = 0) -> Tensor:
    return x.flip(dim)

@f.vmap
def _(info, in_dims, x, dim=0):
    x = x.movedim(in_dims[0], 0)
    {}
    return getattr(torch.ops, library.namespace).f(x, dim + 1), 0

@f.samples
def _(make):
    yield make.randn(4, 6), 1
"""


def test_a_rule_that_is_wrong_for_an_option_is_found(make_subject: MakeSubject) -> None:
    failed, _ = cell(make_subject, ALONG.format("pass"))
    assert failed.failures[0].case.startswith("sample 1, dim=-")
    assert "batches in front: call " in failed.failures[0].case
    assert failed.failures[0].kind is Kind.OPTION


TAKE = """
@library.op(vmap=True, differentiable=("x",))
def f(x: Tensor, at: Tensor) -> Tensor:
    # -1 represents zero.
    return torch.cat([x.new_zeros(1), x]).index_select(0, at.flatten() + 1).view(at.shape)

@f.vmap
def _(info, in_dims, x, at):
    x, at = (one.movedim(dim, 0) if dim is not None else one.expand(info.batch_size, *one.shape)
             for one, dim in zip((x, at), in_dims))
    moved = at + x.shape[1] * torch.arange(info.batch_size).view(-1, *[1] * (at.dim() - 1))
    {}
    return getattr(torch.ops, library.namespace).f(x.flatten(), moved), 0

@f.samples
def _(make):
    yield make.randn(5), make.randint(0, 5, 4)
"""


def test_a_rule_that_is_wrong_for_other_integers_is_found(make_subject: MakeSubject) -> None:
    failed, _ = cell(make_subject, TAKE.format("pass"))
    assert " with one -1" in failed.failures[0].case
    assert failed.failures[0].kind is Kind.INTEGER_VALUES
    passed, _ = cell(make_subject, TAKE.format("moved = torch.where(at < 0, -1, moved)"))
    assert passed.failures == ()


@pytest.mark.parametrize("seed", range(4))
def test_a_quick_check_batches_the_index_for_no_element_with_every_seed(make_subject: MakeSubject, seed: int) -> None:
    subject = make_subject(TAKE.format("pass"), quick=True, seed=seed)
    assert any(case.name.endswith(" with one -1") for case in vmap._varied(subject))


@pytest.mark.parametrize(
    "right", ["if dim < 0: dim += x.dim() - 1", "if dim < 0: raise ValueError(f'dim must be at least 0, got {dim}')"]
)
def test_a_rule_may_reject_inputs_unlike_all_samples(make_subject: MakeSubject, right: str) -> None:
    passed, steps = cell(make_subject, ALONG.format(right))
    assert passed.failures == ()
    assert "sample 1, dim=-1, batches last" in steps


def test_a_rule_that_returns_another_shape_for_an_empty_batch_is_found(make_subject: MakeSubject) -> None:
    wrong = "if info.batch_size == 0:\n        return x.new_empty(1, 4, 6), 0"
    failed, _ = cell(make_subject, rule(wrong))
    assert failed.failures[0].got == "results of shapes [(1, 4, 6)]"


@pytest.mark.parametrize(("quick", "count"), [(True, 10), (False, 32)])
def test_the_mappings_are_bounded_and_share_or_map_each_tensor(
    make_subject: MakeSubject, quick: bool, count: int
) -> None:
    subject = make_subject(OPERATOR, quick=quick)
    made = list(vmap._mappings(subject, subject.samples[0]))
    assert len(made) == count
    assert len({how for how, _ in made}) == count
    for at in range(3):
        assert any(at not in dims for _, dims in made)
        assert any(list(dims) == [at] for _, dims in made)
    assert {dim for _, dims in made for dim in dims.values()} >= {0, -1}
