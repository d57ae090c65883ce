"""Tests that each content of a tensor matches its name, and keeps the tensor's dtype and sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.values import contents
from opwright.checker.cases.variation import tensor_at

NAN, INF = float("nan"), float("inf")
FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
SEEDS = st.integers(0, 2**40)
SHAPES = st.lists(st.integers(1, 7), max_size=3)


def changed(x: Tensor, what: str, seed: int = 0) -> Tensor:
    """`x` with the content named `what`."""
    return changed_case({"x": x}, f"x {what}", seed)["x"]


def changed_case(arguments: dict[str, Tensor], what: str, seed: int = 0) -> dict[str, Tensor]:
    case = Case("sample 1", Family.SAMPLE, arguments)
    (found,) = [one for one in contents(case, seed) if one.what == what]
    return found.of(case).arguments


def names(x: Tensor) -> list[str]:
    found = [one.what.removeprefix("x ") for one in contents(Case("sample 1", Family.SAMPLE, {"x": x}), 0)]
    return [what for what in found if "the number" not in what]


def some(dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.randn(*(shape or (8, 6)), generator=torch.Generator().manual_seed(1)).to(dtype)


def scaled(factor: float) -> Callable[[Tensor, Tensor], bool]:
    def holds(x: Tensor, made: Tensor) -> bool:
        info = torch.finfo(x.dtype)
        return torch.equal(made, (x.double() * factor).clamp(info.min, info.max).to(x.dtype))

    return holds


def moved(offset: float) -> Callable[[Tensor, Tensor], bool]:
    return lambda x, made: torch.equal(made, (x.double() + offset).to(x.dtype))


def places(made: Tensor, special: Callable[[Tensor], Tensor]) -> list[int]:
    return special(made.flatten()).nonzero().flatten().tolist()


def every_fifth(special: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], bool]:
    def holds(x: Tensor, made: Tensor) -> bool:
        found = places(made, special)
        rest = ~special(made)
        return found == list(range(found[0], x.numel(), 5)) and found[0] < 5 and torch.equal(made[rest], x[rest])

    return holds


def equal(x: Tensor, number: float) -> Tensor:
    """A mask of the elements equal to `number`; NaN equals itself."""
    return x.isnan() if math.isnan(number) else x == number


def one_of(number: float) -> Callable[[Tensor, Tensor], bool]:
    def holds(x: Tensor, made: Tensor) -> bool:
        found = equal(made, number)
        return int(found.sum()) == 1 and torch.equal(made[~found], x[~found])

    return holds


def lines(number: float, dim: int) -> Callable[[Tensor, Tensor], bool]:
    """A check that some lines along `dim`, including the first, contain only `number`, and others are unchanged."""

    def holds(x: Tensor, made: Tensor) -> bool:
        was, now = x.movedim(dim, -1).flatten(0, -2), made.movedim(dim, -1).flatten(0, -2)
        full = equal(now, number).all(-1)
        return bool(full[0]) and torch.equal(now[~full], was[~full])

    return holds


def denormal(x: Tensor) -> Tensor:
    return x.double().abs() < torch.finfo(x.dtype).tiny


def is_sorted(made: Tensor, *, descending: bool) -> bool:
    return torch.equal(made.flatten(), made.flatten().sort(descending=descending).values)


def same_numbers(x: Tensor, made: Tensor) -> bool:
    return torch.equal(x.flatten().sort().values, made.flatten().sort().values)


PROMISES: dict[str, Callable[[Tensor, Tensor], bool]] = {
    **{f"times {factor:g}": scaled(factor) for factor in (1e-30, 1e-20, 1e-10, 1e-5, 1e-3, 1e3, 1e5, 1e10, 1e20, 1e30)},
    **{f"plus {offset:g}": moved(offset) for offset in (1.0, -1.0, 1e2, 1e4, -1e4)},
    "of very different magnitudes": lambda x, made: bool(
        (made.sign() * x.sign() >= 0).all() and made.abs().max() > 1e3 and made.abs().min() < 1e-3
    ),
    "with one outlier": one_of(1e4),
    "close to 1": lambda x, made: torch.equal(made, (1 + x.double() / 1000).to(x.dtype)),
    "times -1": lambda x, made: torch.equal(made, -x),
    "positive": lambda x, made: torch.equal(made, x.abs()),
    "negative": lambda x, made: torch.equal(made, -x.abs()),
    "zero": lambda _, made: bool((made == 0).all() and not made.signbit().any()),
    "negative zero": lambda _, made: bool((made == 0).all() and made.signbit().all()),
    "one": lambda _, made: bool((made == 1).all()),
    "constant": lambda x, made: bool((made == x.flatten()[0]).all()),
    "of halves": lambda _, made: bool((made.double() % 1 == 0.5).all()),
    "of small integers": lambda _, made: bool((made % 1 == 0).all() and made.unique().numel() > 2),
    "of powers of two": lambda x, made: bool(
        (made.double().frexp().mantissa.abs() == 0.5).all()
        and (made.sign() == x.sign()).all()
        and made.abs().max() > 1 > made.abs().min()
    ),
    "with ties": lambda x, made: torch.equal(made, x.sign()),
    "half zero": lambda x, made: 0 < int((made == 0).sum()) < x.numel() and bool(((made == 0) | (made == x)).all()),
    "sorted": lambda x, made: same_numbers(x, made) and is_sorted(made, descending=False),
    "sorted, largest first": lambda x, made: same_numbers(x, made) and is_sorted(made, descending=True),
    "of sorted small integers": lambda x, made: (
        same_numbers((2 * x).round(), made) and is_sorted(made, descending=False)
    ),
    "with NaN": every_fifth(torch.isnan),
    "with infinities": lambda x, made: (
        every_fifth(torch.isinf)(x, made) and {INF, -INF} <= set(made.flatten().tolist())
    ),
    "with denormals and signed zeros": lambda x, made: (
        every_fifth(denormal)(x, made)
        and {(float(n) == 0, bool(n.signbit())) for n in made[denormal(made)]}
        == {(zero, sign) for zero in (True, False) for sign in (True, False)}
    ),
    "with one NaN": one_of(NAN),
    "with NaN at the end": lambda x, made: one_of(NAN)(x, made) and bool(made.flatten()[-1].isnan()),
    "with one infinity": one_of(INF),
    "with one -infinity": one_of(-INF),
    "with rows of NaN": lines(NAN, -1),
    "with rows of -inf": lines(-INF, -1),
    "with rows of +inf": lines(INF, -1),
    "with rows of zero": lines(0.0, -1),
    "with columns of -inf": lines(-INF, 0),
}


def only(number: int) -> Callable[[Tensor, Tensor], bool]:
    return lambda _, made: bool((made == number).all())


def one_integer(number: Callable[[Tensor], int]) -> Callable[[Tensor, Tensor], bool]:
    def holds(x: Tensor, made: Tensor) -> bool:
        other = made != x
        return int(other.sum()) <= 1 and int((made == number(x)).sum()) >= 1

    return holds


def is_signed(x: Tensor) -> bool:
    return torch.iinfo(x.dtype).min < 0


def raised(number: int) -> Callable[[Tensor, Tensor], bool]:
    def holds(x: Tensor, made: Tensor) -> bool:
        most = torch.iinfo(x.dtype).max
        wanted = [min(int(one) + number, most) if number <= most else int(one) for one in x.flatten()]
        return [int(one) for one in made.flatten()] == wanted

    return holds


INTEGER_PROMISES: dict[str, Callable[[Tensor, Tensor], bool]] = {
    "zero": only(0),
    "one": only(1),
    "times -1": lambda x, made: torch.equal(made, -x if is_signed(x) else x),
    "of both signs": lambda x, made: (
        torch.equal(x - made, (x - made).flatten()[0].expand_as(x)) and int(made.min()) < 0 < int(made.max())
        if is_signed(x)
        else torch.equal(made, x)
    ),
    "with one -1": lambda x, made: one_integer(lambda _: -1)(x, made) if is_signed(x) else torch.equal(made, x),
    "with one past the largest": one_integer(lambda x: int(x.max()) + 1),
    "with one that is far too large": one_integer(lambda x: min(10**6, torch.iinfo(x.dtype).max)),
    "plus 2^24": raised(2**24),
    "plus 2^53": raised(2**53),
    "with one largest integer": one_integer(lambda x: torch.iinfo(x.dtype).max),
    "with one smallest integer": one_integer(lambda x: torch.iinfo(x.dtype).min),
    "of largest integers": lambda x, made: bool((made == torch.iinfo(x.dtype).max).all()),
    "constant": lambda x, made: bool((made == x.flatten()[0]).all()),
    "sorted": lambda x, made: same_numbers(x, made) and is_sorted(made, descending=False),
    "sorted, largest first": lambda x, made: same_numbers(x, made) and is_sorted(made, descending=True),
    "in another order": lambda x, made: same_numbers(x, made) and not torch.equal(x, made),
}


def test_every_content_is_tested_here() -> None:
    assert set(names(torch.ones(3))) == set(PROMISES)
    assert set(names(torch.ones(3, dtype=torch.int64))) == set(INTEGER_PROMISES)


@pytest.mark.parametrize(("dtype", "first"), [(torch.float32, [-1, 0]), (torch.int64, [])])
def test_every_tensor_gets_the_limits_of_indices_into_the_others(dtype: torch.dtype, first: list[int]) -> None:
    given_at = {"signals": torch.ones(4, 32), "at": torch.full((7,), 9, dtype=dtype)}
    case = Case("sample 1", Family.SAMPLE, given_at)
    limits = [one for one in contents(case, 0) if one.what.startswith("at with the number ")]
    assert [int(one.what.rpartition(" ")[2]) for one in limits] == [*first, 3, 4, 6, 7, 31, 32]
    for one in limits:
        made = one.of(case).arguments
        assert set(made["at"].tolist()) == {9, int(one.what.rpartition(" ")[2])}
        assert torch.equal(made["signals"], given_at["signals"])


def test_an_index_stays_in_the_range_of_the_dtype() -> None:
    given_at = {"signals": torch.ones(300), "at": torch.zeros(4, dtype=torch.uint8)}
    (found,) = [one for one in contents(Case("", Family.SAMPLE, given_at), 0) if one.what == "at with the number 300"]
    assert 255 in found.change(given_at)["at"].tolist()


@pytest.mark.parametrize("dtype", FLOATING)
@given(seed=SEEDS)
def test_floating_point_values_match_the_name(dtype: torch.dtype, seed: int) -> None:
    matches(some(dtype), PROMISES, seed)


@pytest.mark.parametrize("dtype", INTEGERS)
@given(seed=SEEDS)
def test_integers_match_the_name_within_the_range_of_the_dtype(dtype: torch.dtype, seed: int) -> None:
    matches(torch.arange(5, 35).reshape(6, 5).to(dtype), INTEGER_PROMISES, seed)


def matches(x: Tensor, promises: dict[str, Callable[[Tensor, Tensor], bool]], seed: int) -> None:
    """Assert that each content of `x` keeps its promise, and does not change `x`."""
    before = x.clone()
    case = Case("sample 1", Family.SAMPLE, {"x": x})
    made_by_name = [(one.what, one.of(case).arguments["x"]) for one in contents(case, seed)]
    found = dict(made_by_name)
    assert len(found) == len(made_by_name)
    for what, promise in promises.items():
        made = found[f"x {what}"]
        assert (made.dtype, made.shape) == (x.dtype, x.shape), what
        assert promise(x, made), what
    assert torch.equal(x, before)


@given(shape=SHAPES, dtype=st.sampled_from([*FLOATING, *INTEGERS, torch.bool]), seed=SEEDS)
def test_every_content_applies_to_tensors_of_all_sizes(shape: list[int], dtype: torch.dtype, seed: int) -> None:
    x = torch.ones(shape).to(dtype)
    case = Case("sample 1", Family.SAMPLE, {"x": x})
    for variation in contents(case, seed):
        made = variation.of(case).arguments["x"]
        assert (made.dtype, made.shape) == (x.dtype, x.shape), variation.what
    assert torch.equal(x, torch.ones(shape).to(dtype))


@pytest.mark.parametrize(("dtype", "top"), [(torch.uint8, 255), (torch.int8, 127), (torch.int64, 2**63 - 1)])
def test_an_integer_past_the_largest_stays_in_the_range_of_the_dtype(dtype: torch.dtype, top: int) -> None:
    x = torch.full((4,), top, dtype=dtype)
    assert changed(x, "with one past the largest").tolist() == [top] * 4


@pytest.mark.parametrize("what", ["with NaN", "with one infinity", "with rows of -inf"])
def test_special_values_are_at_different_positions_in_each_tensor(what: str) -> None:
    apart = 0
    for seed in range(20):
        made = changed_case({"x": some(torch.float32), "y": some(torch.float32)}, f"all tensors {what}", seed)
        first, second = (places(made[name], lambda x: ~x.isfinite()) for name in ("x", "y"))
        assert first
        assert second
        apart += first != second
    assert apart >= 10


def test_a_content_changes_only_the_tensor_that_it_names() -> None:
    x, y, n = some(torch.float32), some(torch.float32), torch.arange(6)
    given_xy = {"x": x, "y": y, "n": n}
    made = changed_case(given_xy, "y zero")
    assert made["x"] is x
    assert made["n"] is n
    assert not made["y"].any()
    both = changed_case(given_xy, "all tensors zero")
    assert not both["x"].any()
    assert not both["y"].any()
    assert both["n"] is n


def test_empty_tensors_are_unchanged() -> None:
    assert names(torch.ones(0, 3)) == []


def test_the_real_and_imaginary_parts_are_both_changed() -> None:
    x = torch.complex(torch.arange(1.0, 7), -torch.arange(2.0, 8)).view(2, 3)
    assert not [what for what in names(x) if "NaN" in what or "inf" in what]
    assert torch.equal(changed(x, "times 1000"), 1000 * x)
    assert torch.equal(changed(x, "positive"), torch.complex(x.real, -x.imag))
    assert changed(x, "times 1e+30").dtype == torch.complex64
    ties = changed(x, "half zero")
    assert 0 < int((torch.view_as_real(ties) == 0).sum()) < 12


def test_tensors_in_lists_are_changed_too() -> None:
    case = Case("sample 1", Family.SAMPLE, {"xs": [torch.ones(2), None, torch.ones(3)]})
    (found,) = [one for one in contents(case, 0) if one.what == "xs[2] zero"]
    made = found.of(case).arguments
    assert tensor_at(made, "xs[2]").tolist() == [0, 0, 0]
    assert tensor_at(made, "xs[0]").tolist() == [1, 1]


def test_booleans_are_tried_constant_inverted_and_all_but_one() -> None:
    x = torch.tensor([True, False, True, False])
    assert changed(x, "true").all()
    assert not changed(x, "false").any()
    assert changed(x, "inverted").tolist() == [False, True, False, True]
    assert int(changed(x, "with one true").sum()) == 1
    assert int(changed(x, "with one false").sum()) == 3


@given(seed=SEEDS)
def test_the_operator_receives_other_bytes_of_booleans_and_the_reference_0_and_1(seed: int) -> None:
    x = torch.tensor([True, False] * 8)
    case = Case("sample 1", Family.SAMPLE, {"x": x})
    (found,) = [one for one in contents(case, seed) if one.what == "x in bytes other than 0 and 1"]
    made = found.of(case)
    numbers = made.fresh()["x"].view(torch.uint8)
    assert ((numbers == 0) == ~x).all()
    assert (numbers[x] > 1).all()
    assert made.plain()["x"].view(torch.uint8).tolist() == [1, 0] * 8
    # The case itself keeps its bytes.
    assert torch.equal(made.arguments["x"].view(torch.uint8), numbers)
    assert x.view(torch.uint8).tolist() == [1, 0] * 8


def test_booleans_are_normalized_in_views_with_any_strides() -> None:
    memory = torch.tensor([7, 0, 200, 1], dtype=torch.uint8).view(torch.bool)
    for view in (memory.expand(3, 4), memory[::2], memory.reshape(2, 2).t(), memory[1:]):
        plain = Case("sample 1", Family.SAMPLE, {"x": view}).plain()["x"]
        assert plain.stride() == view.stride()
        assert torch.equal(plain.view(torch.uint8), (view.view(torch.uint8) != 0).to(torch.uint8))
    assert memory.view(torch.uint8).tolist() == [7, 0, 200, 1]
