from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases import large
from opwright.checker.cases.case import Case, Family
from opwright.errors import SpecError
from opwright.spec import Make, derive

if TYPE_CHECKING:
    from opwright.checker.subject import Subject
    from tests.unit.checker.conftest import MakeSubject

ASKED = """
@library.op
def asked(x: Tensor, y: Tensor, n: int) -> Tensor:
    return x @ y

@asked.samples(dtypes=(torch.float64, torch.bfloat16))
def _(make):
    n = make.size(6)
    m = make.size(3)
    assert n != 9, "this function does not take 9"
    yield make.randn(n, 2 * n), make.randn(2 * n, m), n
    yield make.randn(n, n), make.randn(n, 50), n
    yield make.randn(100, 100), make.randn(100, 100), 100
"""
WRITTEN = """
@library.op
def written(x: Tensor, index: Tensor) -> Tensor:
    return x[index]

@written.samples
def _(make):
    yield make.randn(12, 5), make.randint(0, 2, 5)
    yield make.randn(70, 5), make.randint(0, 2, 70)
"""
SMALLEST_LAST = """
@library.op
def doubled(x: Tensor) -> Tensor:
    return 2 * x

@doubled.samples
def _(make):
    yield make.randn(12, 5)
    yield make.randn(3, 4)
"""


@pytest.fixture(scope="module")
def asked(make_subject: MakeSubject) -> Subject:
    return make_subject(ASKED)


@pytest.fixture(scope="module")
def written(make_subject: MakeSubject) -> Subject:
    return make_subject(WRITTEN)


def of(subject: Subject, *families: Family) -> dict[str, Case]:
    return {case.name: case for case in subject.varied if case.family in families}


def shapes(case: Case) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in derive.tensors(case.arguments)]


def test_samples_are_numbered_and_claimed(asked: Subject) -> None:
    assert [case.name for case in asked.samples] == ["sample 1", "sample 2", "sample 3"]
    assert all(case.claimed and case.family is Family.SAMPLE for case in asked.samples)


def test_samples_that_yield_nothing_are_refused(make_subject: MakeSubject) -> None:
    subject = make_subject("@library.op\ndef none(x: Tensor) -> Tensor:\n    return x + 1\n@none.samples\n" + NOTHING)
    with pytest.raises(SpecError, match=r"the samples of \w+::none yield nothing: yield the arguments of at least one"):
        _ = subject.samples


NOTHING = "def _(make):\n    yield from ()\n"


def test_sizes_that_were_asked_for_are_varied_and_what_follows_from_them_varies_too(asked: Subject) -> None:
    sized = of(asked, Family.SIZE, Family.TAIL, Family.EMPTY)
    assert shapes(sized["sample 1, size 1 as 17"]) == [(17, 34), (34, 3)]
    assert sized["sample 1, size 1 as 17"].arguments["n"] == 17
    assert shapes(sized["sample 1, size 2 as 4099"]) == [(6, 12), (12, 4099)]
    assert shapes(sized["sample 2, size 1 as 0"]) == [(0, 0), (0, 50)]
    # The numbers that are written down are left alone where sizes are asked for.
    assert all(name.split(", ")[1].startswith(("size 1 as", "size 2 as")) for name in sized)


def test_the_family_of_a_size_says_what_it_tries(asked: Subject) -> None:
    sized = {name: case.family for name, case in of(asked, Family.SIZE, Family.TAIL, Family.EMPTY).items()}
    for size, family in ((0, Family.EMPTY), (1, Family.SIZE), (2, Family.SIZE), (7, Family.TAIL), (33, Family.TAIL)):
        assert sized[f"sample 1, size 1 as {size}"] is family
    assert sized["sample 1, size 2 as 4099"] is Family.SIZE


def test_what_the_samples_do_not_take_or_would_be_too_large_is_dropped(asked: Subject) -> None:
    names = of(asked, Family.SIZE, Family.TAIL, Family.EMPTY)
    assert "sample 1, size 1 as 8" in names
    assert "sample 1, size 1 as 9" not in names
    assert "sample 1, size 1 as 4099" not in names
    assert "sample 1, size 1 as 6" not in names  # as it is
    assert all(sum(tensor.numel() for tensor in derive.tensors(case.arguments)) <= 2**21 for case in names.values())


def test_a_size_that_would_be_too_large_is_never_drawn(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def wide(x: Tensor) -> Tensor:
    return x + 1

@wide.samples
def _(make):
    x = make.randn(11, 11, 3)
    drawn.append(x.numel())
    yield x

drawn = []
""")
    assert len(subject.varied) > 20
    assert max(subject.op.reference.__globals__["drawn"]) <= 2**21
    with pytest.raises(SpecError, match=r"a tensor of shape \(4099, 4099\) has more than 2097152 elements"):
        Make(most_elements=2**21, literals={16: 4099}).randn(16, 16)


def test_numbers_that_are_written_down_are_replaced_everywhere(written: Subject) -> None:
    sized = of(written, Family.SIZE, Family.TAIL, Family.EMPTY)
    assert shapes(sized["sample 1, size 5 as 9"]) == [(12, 9), (9,)]
    assert shapes(sized["sample 2, size 5 as 9"]) == [(70, 9), (70,)]
    assert shapes(sized["sample 1, size 12 as 33"]) == [(33, 5), (5,)]
    assert "sample 2, size 12 as 33" not in sized  # it holds no 12


def test_dtypes_are_tried_and_those_that_are_claimed_are_said(asked: Subject) -> None:
    tried = of(asked, Family.DTYPE)
    assert {name.rpartition(" ")[2] for name in tried} == {"float64", "bfloat16", "float16", "int32"}
    for name, case in tried.items():
        dtype = getattr(torch, name.rpartition(" ")[2])
        assert {tensor.dtype for tensor in derive.tensors(case.arguments)} == {dtype}
        assert case.claimed == (dtype in {torch.float64, torch.bfloat16})
    assert {case.name for case in asked.claimed} == {case.name for case in asked.samples} | {
        name for name, case in tried.items() if case.claimed
    }


def test_what_says_its_dtype_keeps_it(written: Subject) -> None:
    for case in of(written, Family.DTYPE).values():
        assert case.arguments["index"].dtype == torch.int64


def test_only_the_two_smallest_samples_are_varied(asked: Subject) -> None:
    assert {case.name[: len("sample 1")] for case in asked.varied} == {"sample 1", "sample 2"}


def test_special_values_are_there_and_usual_ones_beside_them(asked: Subject) -> None:
    special = of(asked, Family.SPECIAL)
    nan = special["sample 1 with NaN"].arguments["x"].flatten()
    assert nan.isnan().nonzero().flatten().tolist() == list(range(0, 72, 5))
    infinities = special["sample 1 with infinities"].arguments["x"].flatten()
    assert (infinities[0], infinities[5], infinities[10]) == (float("inf"), float("-inf"), float("inf"))
    small = special["sample 1 with denormals and signed zeros"].arguments["x"].flatten()[::5]
    assert 0 < small[0] < torch.finfo(torch.float32).tiny
    assert small[2] == small[3] == 0
    assert small[2].signbit() != small[3].signbit()
    assert torch.equal(nan[1:5], asked.samples[0].arguments["x"].flatten()[1:5])


def test_integers_have_no_special_values(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def whole(x: Tensor) -> Tensor:
    return x + 1

@whole.samples
def _(make):
    yield make.randint(0, 5, 4, 4)
""")
    assert of(subject, Family.SPECIAL) == {}
    assert list(of(subject, Family.BAD_DTYPE)) == ["sample 1, x alone in float32"]


def test_bad_inputs_are_of_every_sort(asked: Subject) -> None:
    bad = of(asked, Family.BAD_DTYPE, Family.BAD_RANK, Family.BAD_SIZE, Family.BAD_DEVICE)
    wanted = {
        "x alone in float64": [(6, 12), (12, 3)],
        "x alone in int64": [(6, 12), (12, 3)],
        "y with one dimension more": [(6, 12), (1, 12, 3)],
        "y with one dimension less": [(6, 12), (3,)],
        "x flattened": [(72,), (12, 3)],
        "x one shorter in dimension 1": [(6, 11), (12, 3)],
        "y one longer in dimension 0": [(6, 12), (13, 3)],
        "x on the meta device": [(6, 12), (12, 3)],
    }
    for name, sizes in wanted.items():
        assert shapes(bad[f"sample 1, {name}"]) == sizes
    assert bad["sample 1, x alone in int64"].arguments["x"].dtype == torch.int64
    assert bad["sample 1, x on the meta device"].arguments["x"].is_meta
    assert not any(case.claimed for case in bad.values())


def test_a_lone_tensor_has_no_partner_to_differ_from(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def alone(x: Tensor) -> Tensor:
    return x + 1

@alone.samples
def _(make):
    yield make.randn(12, 5)
""")
    assert of(subject, Family.BAD_SIZE, Family.BAD_DEVICE) == {}
    assert of(subject, Family.BAD_RANK)


def test_tensors_in_lists_are_varied_each(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def joined(xs: Sequence[Tensor], y: Tensor | None = None) -> Tensor:
    return sum(xs)

@joined.samples
def _(make):
    yield [make.randn(3, 4), make.randn(3, 4)]
""")
    case = of(subject, Family.STRIDES)["sample 1, xs[1] transposed"]
    first, second = case.arguments["xs"]
    assert (first.stride(), second.stride()) == ((4, 1), (1, 3))
    assert torch.equal(second, subject.samples[0].arguments["xs"][1])
    assert case.arguments["y"] is None


def test_rows_far_apart_are_tried_but_not_of_what_is_written_to(asked: Subject, make_subject: MakeSubject) -> None:
    assert list(of(asked, Family.FAR)) == [
        "sample 1, x with rows more than 2^31 elements apart",
        "sample 1, y with rows more than 2^31 elements apart",
    ]
    subject = make_subject("""
@library.op(mutates=("x",))
def added_(x: Tensor, y: Tensor) -> None:
    x.add_(y)

@added_.samples
def _(make):
    yield make.randn(3, 4), make.randn(3, 4)
""")
    assert list(of(subject, Family.FAR)) == ["sample 1, y with rows more than 2^31 elements apart"]


def test_each_case_has_a_name_of_its_own(asked: Subject, written: Subject) -> None:
    for subject in (asked, written):
        names = [case.name for case in (*subject.samples, *subject.varied)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", [ASKED, WRITTEN, SMALLEST_LAST])
def test_a_quick_check_tries_some_of_the_same(make_subject: MakeSubject, text: str) -> None:
    quick, all_of_them = make_subject(text, quick=True), make_subject(text)
    names = {case.name for case in all_of_them.varied}
    assert {case.name for case in quick.varied} < names
    assert {case.family for case in quick.varied} == {case.family for case in all_of_them.varied}


def test_the_seed_decides_the_numbers_and_nothing_else(make_subject: MakeSubject) -> None:
    first, again, other = (make_subject(ASKED, quick=True, seed=seed) for seed in (3, 3, 4))
    for one, same, another in zip(first.varied, again.varied, other.varied, strict=True):
        assert one.name == same.name == another.name
        tensors = [derive.tensors(case.arguments) for case in (one, same, another)]
        for mine, its, different in zip(*tensors, strict=True):
            if mine.is_meta:
                continue
            assert torch.equal(mine.nan_to_num(), its.nan_to_num())
            assert mine.numel() < 2 or not torch.equal(mine.nan_to_num(), different.nan_to_num())


# -- more than 2**31 bytes --------------------------------------------------------------------------------


def test_a_large_call_is_made_only_where_it_is_asked_for(asked: Subject) -> None:
    assert asked.large() == (None, "")


def test_where_memory_is_short_a_large_call_is_left_out_and_it_is_said(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "bytes_free", lambda device: 10 * 2**30)
    subject = make_subject(WRITTEN, large=True)
    case, reason = subject.large()
    assert case is None
    assert reason == ("no call with more than 2^31 bytes was tried: that takes 12.0 GiB of memory, 10.0 GiB are free")


def drawn_large(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> tuple[Case | None, str]:
    """What `large` gives where there is memory, without taking any: the numbers are left out."""
    monkeypatch.setattr(large, "bytes_free", lambda device: 2**40)
    given = subject.samples
    subject.device = "meta"
    return large.large_case(subject.op, given, "meta", subject.options.seed)


@pytest.mark.parametrize(
    ("text", "name", "sizes", "dtype"),
    [
        # The size that is asked for first, in the claimed dtype of fewest bytes: (n, 2 n) of two bytes each.
        (ASKED, "sample 1, size 1 as 23171: more than 2^31 bytes", (23171, 46342), torch.bfloat16),
        (WRITTEN, "sample 1, size 12 as 107374183: more than 2^31 bytes", (107374183, 5), torch.float32),
    ],
)
def test_a_large_call_has_just_more_than_2_to_the_31_bytes(
    make_subject: MakeSubject,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    name: str,
    sizes: tuple[int, ...],
    dtype: torch.dtype,
) -> None:
    case, reason = drawn_large(make_subject(text, large=True), monkeypatch)
    assert reason == ""
    assert case is not None
    assert (case.name, case.family, case.claimed) == (name, Family.FAR, False)
    assert (tuple(case.arguments["x"].shape), case.arguments["x"].dtype) == (sizes, dtype)
    assert case.arguments["x"].nbytes > 2**31


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ("yield make.photograph('camera').float()", "no size in the samples makes such a tensor"),
        ("n = make.size(4)\n    yield make.randn(n % 7 + 1)", "no size in the samples makes such a tensor"),
    ],
)
def test_where_no_size_makes_a_large_tensor_it_is_said(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch, samples: str, reason: str
) -> None:
    subject = make_subject(
        f"@library.op\ndef f(x: Tensor) -> Tensor:\n    return x + 1\n@f.samples\ndef _(make):\n    {samples}",
        large=True,
    )
    assert drawn_large(subject, monkeypatch) == (None, f"no call with more than 2^31 bytes was tried: {reason}")


def test_the_numbers_of_a_very_large_tensor_are_repeated_but_not_at_a_power_of_two() -> None:
    count = 2**24 + 2**20
    drawn = Make().randint(0, 100, count, dtype=torch.uint8)
    block = 2**24 - 3
    assert torch.equal(drawn[block:], drawn[: count - block])
    assert not torch.equal(drawn[2**24 :], drawn[: count - 2**24])
    assert drawn[:block].max() == 99
    few = Make().randint(0, 100, 1000, dtype=torch.uint8)
    assert torch.equal(few, Make().randint(0, 100, 1000, dtype=torch.uint8))


def test_on_the_meta_device_nothing_is_drawn() -> None:
    drawn = Make(device="meta").randn(2**40, 3)
    assert drawn.is_meta
    assert drawn.shape == (2**40, 3)
