from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opwright.errors import SpecError, ToolchainError
from opwright.spec.samples import Make, Sample, draw_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPES = st.lists(st.integers(0, 9), max_size=4).map(tuple)


@given(SHAPES, st.integers(0, 2**31))
def test_a_seed_produces_the_same_numbers_in_every_dtype(shape: tuple[int, ...], seed: int) -> None:
    wide, narrow = (Make(seed=seed, dtype=dtype) for dtype in (torch.float64, torch.float32))
    for first, second in ((wide.randn(*shape), narrow.randn(*shape)), (wide.rand(*shape), narrow.rand(*shape))):
        assert first.shape == second.shape == shape
        assert (first.dtype, second.dtype) == (torch.float64, torch.float32)
        assert torch.equal(first.float(), second)


def test_another_seed_produces_different_numbers() -> None:
    assert not torch.equal(Make(seed=1).randn(8), Make(seed=2).randn(8))


def test_the_dtype_of_the_author_takes_precedence_over_that_of_a_check() -> None:
    make = Make(dtype=torch.float64)
    assert make.randn(2).dtype == torch.float64
    assert make.randn(2, dtype=torch.bfloat16).dtype == torch.bfloat16
    assert make.randint(0, 5, 2).dtype == torch.int64
    assert make.randint(0, 5, 2, dtype=torch.uint8).dtype == torch.uint8


@given(st.integers(-100, 100), st.integers(1, 100), SHAPES)
def test_numbers_are_within_their_range(low: int, span: int, shape: tuple[int, ...]) -> None:
    whole = Make().randint(low, low + span, *shape)
    assert whole.shape == shape
    assert bool(((whole >= low) & (whole < low + span)).all())
    parts = Make(dtype=torch.float64).rand(*shape)
    assert bool(((parts >= 0) & (parts < 1)).all())


def test_sizes_are_varied_by_the_order_of_the_calls() -> None:
    def sizes(make: Make) -> tuple[int, ...]:
        n, m = make.size(16), make.size(3)
        return tuple(make.randn(n, 2 * m, n + m).shape)

    plain, varied = Make(), Make(sizes={1: 5})
    assert sizes(plain) == (16, 6, 19)
    assert sizes(varied) == (16, 10, 21)
    assert plain.sizes_asked == varied.sizes_asked == [16, 3]


def test_a_literal_size_is_varied_wherever_it_occurs() -> None:
    make = Make(literals={16: 7})
    assert make.randn(16, 33).shape == (7, 33)
    assert make.rand(33, 16, 16).shape == (33, 7, 7)
    assert make.randint(0, 5, 16).shape == (7,)
    assert make.literals_seen == [16, 33]


def test_a_photograph_is_uint8() -> None:
    pytest.importorskip("skimage")
    make = Make(dtype=torch.float64)
    assert (make.photograph("camera").shape, make.photograph("camera").dtype) == ((512, 512), torch.uint8)
    assert make.photograph("astronaut").shape == (512, 512, 3)


def test_an_unknown_photograph_is_an_error() -> None:
    pytest.importorskip("skimage")
    with pytest.raises(
        ToolchainError, match="scikit-image has no photograph 'unicorn' on this machine: use astronaut, cam"
    ):
        Make().photograph("unicorn")


def test_without_scikit_image_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("skimage"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ToolchainError, match="which is not installed: install scikit-image"):
        Make().photograph("camera")


def test_every_yielded_form_becomes_a_call() -> None:
    def samples(make: Make) -> Iterator[Any]:
        yield 1
        yield (1, 2)
        yield [1, 2]
        yield ()
        yield make.call(1, x=2)

    assert list(draw_samples(samples, Make(), "mine::f")) == [
        *(Sample((1,)), Sample((1, 2)), Sample(([1, 2],)), Sample(), Sample((1,), {"x": 2})),
    ]


def test_samples_that_are_returned_instead_of_yielded_are_rejected() -> None:
    def samples(make: Make) -> Any:
        return [(make.randn(2),)]

    with pytest.raises(SpecError, match=r"the samples of mine::f must be a generator: write `yield make\.randn"):
        list(draw_samples(samples, Make(), "mine::f"))


def test_the_numbers_of_a_very_large_tensor_are_repeated_but_not_at_a_power_of_two() -> None:
    count = 2**24 + 2**20
    drawn = Make().randint(0, 100, count, dtype=torch.uint8)
    block = 2**24 - 3
    assert torch.equal(drawn[block:], drawn[: count - block])
    assert not torch.equal(drawn[2**24 :], drawn[: count - 2**24])
    assert drawn[:block].max() == 99
    few = Make().randint(0, 100, 1000, dtype=torch.uint8)
    assert torch.equal(few, Make().randint(0, 100, 1000, dtype=torch.uint8))


def test_nothing_is_drawn_on_the_meta_device() -> None:
    drawn = Make(device="meta").randn(2**40, 3)
    assert drawn.is_meta
    assert drawn.shape == (2**40, 3)
