from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.checker.cases.limits import limits

if TYPE_CHECKING:
    from opwright.checker.subject import Subject
    from tests.unit.checker.conftest import MakeSubject

LIMITED = """
@library.op
def limited(x: Tensor, rows: int, flag: bool) -> Tensor:
    if not 3 <= x.shape[0] <= 700:
        raise ValueError("x must have 3 to 700 rows")
    if not -7 * 5 <= rows <= 31 * 30:
        raise ValueError("rows must be -35 to 930")
    return x.repeat(2, 1) + rows

@limited.samples
def _(make):
    yield make.randn(make.size(6), 4), 9, True
"""
BRANCHES_ON_NUMBERS = LIMITED.replace("if not 3", "if bool(x.sum() > 1e9) or not 3")


def names(subject: Subject) -> list[str]:
    return [case.name for case in subject.limits()]


@settings(max_examples=200)
@given(st.integers(-(2**31), 2**31), st.integers(-(2**31), 2**31), st.integers(0, 2**31))
def test_both_sides_of_a_limit_are_found(start: int, farthest: int, most: int) -> None:
    found = limits(lambda number: abs(number - start) <= most, start, farthest)
    if abs(farthest - start) <= most:
        assert not found
    else:
        side = 1 if farthest > start else -1
        assert found == [start + side * most, start + side * (most + 1)]


def test_there_is_no_limit_if_acceptance_is_unknown() -> None:
    assert limits(lambda number: None if number < 100 else False, 1, 2**31) == []
    assert limits(lambda _: None, 1, 2**31) == []


def test_sizes_and_integers_are_tried_at_the_limits_of_the_reference_and_beyond(make_subject: MakeSubject) -> None:
    assert names(make_subject(LIMITED, quick=True)) == [
        "sample 1, size 1 as 3",
        "sample 1, size 1 as 700",
        "sample 1, size 1 as 701",
        "sample 1, rows=-35",
        "sample 1, rows=-36",
        "sample 1, rows=930",
        "sample 1, rows=931",
    ]


def test_the_limits_of_integers_are_also_tried_at_sizes_that_threads_split(make_subject: MakeSubject) -> None:
    wider = LIMITED.replace("3 <= x.shape[0] <= 700", "3 <= x.shape[0]")
    found = names(make_subject(wider, quick=True))
    assert found[-4:] == [f"sample 1, size 1 as 32769, rows={rows}" for rows in (-35, -36, 930, 931)]


def test_a_reference_that_branches_on_values_has_no_known_limits(make_subject: MakeSubject) -> None:
    assert names(make_subject(BRANCHES_ON_NUMBERS, quick=True)) == []


@pytest.mark.parametrize("size", [700, 701])
def test_a_call_at_a_limit_has_the_size(make_subject: MakeSubject, size: int) -> None:
    (case,) = [case for case in make_subject(LIMITED).limits() if case.name.endswith(f"size 1 as {size}")]
    assert case.arguments["x"].shape == (size, 4)


def test_calls_outside_the_domain_or_too_expensive_are_not_tried(make_subject: MakeSubject) -> None:
    domain = "@limited.domain\ndef _(x, rows, flag):\n    return x.shape[0] != 700 and rows != -36\n"
    found = names(make_subject(f"{LIMITED}\n{domain}", quick=True))
    assert "sample 1, size 1 as 701" in found
    assert "sample 1, size 1 as 700" not in found
    assert "sample 1, rows=-36" not in found
    large = LIMITED.replace("rows <= 31 * 30", "rows <= 2**30").replace("repeat(2, 1)", "repeat(max(rows, 1), 1)")
    found = names(make_subject(large, quick=True))
    assert f"sample 1, rows={2**30 + 1}" in found
    assert f"sample 1, rows={2**30}" not in found


def test_samples_that_loop_over_a_size_are_not_drawn_forever(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opwright.checker.cases.samples._SECONDS", 1.0)
    loop = """
    rows = make.size(6)
    x = make.randn(rows, 4)
    for _ in range(rows):
        x = x + 1
    yield x, 9, True
"""
    found = names(make_subject(LIMITED.replace("    yield make.randn(make.size(6), 4), 9, True\n", loop), quick=True))
    assert [name for name in found if "size" in name] == ["sample 1, size 1 as 3"]


def test_a_reference_that_splits_a_large_tensor_is_accepted_quickly(make_subject: MakeSubject) -> None:
    apart = LIMITED.replace("not 3 <= x.shape[0] <= 700", "x.shape[0] < 3")
    apart = apart.replace("return x.repeat(2, 1) + rows", "return torch.stack([one + rows for one in x])")
    assert "sample 1, size 1 as 3" in names(make_subject(apart, quick=True))
