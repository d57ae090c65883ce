from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from opwright.spec import Make, Sample
from tests.unit.spec.conftest import described, raises

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


def joined(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def swept(sweep: Callable[[Make], Any]) -> list[tuple[str, Sample]]:
    op = described(scale)
    op.sweep(sweep)
    return [(size.label, size.call) for size in op.sizes(Make())]


def test_a_sweep_yields_labels_and_calls_with_and_without_keywords() -> None:
    def sweep(make: Make) -> Iterator[Any]:
        yield "small", (make.randn(2), 3.0)
        yield "large", make.call(make.randn(20), factor=4.0)

    (small, first), (large, second) = swept(sweep)
    assert [small, large] == ["small", "large"]
    assert (first.args[0].shape, first.args[1], first.kwargs) == ((2,), 3.0, {})
    assert (second.args[0].shape, second.kwargs) == ((20,), {"factor": 4.0})


def test_sizes_are_made_lazily() -> None:
    made = []

    def sweep(make: Make) -> Iterator[Any]:
        for size in (1, 2, 3):
            made.append(size)
            yield str(size), (make.randn(size),)

    op = described(scale)
    op.sweep(sweep)
    next(op.sizes(Make()))
    assert made == [1]


def test_without_a_sweep_the_samples_are_the_sizes() -> None:
    op = described(scale)

    @op.samples
    def _(make: Make) -> Iterator[Any]:
        yield make.randn(2)
        yield make.randn(3), 5.0

    assert not op.has_sweep
    assert [(size.label, size.call.args[0].shape) for size in op.sizes(Make())] == [
        ("sample 1", (2,)),
        ("sample 2", (3,)),
    ]


@pytest.mark.parametrize("given", [(torch.ones(2),), ("label",), ("label", torch.ones(2)), (3, (torch.ones(2),)), "a"])
def test_only_a_label_with_a_call_is_accepted(given: object) -> None:
    def sweep(_: Make) -> Iterator[Any]:
        yield given

    with raises(
        'the sweep of mine::scale must yield a label and a call: write `yield "1024 x 1024", (make.randn(1024, 1024)'
    ):
        swept(sweep)


def test_a_sweep_that_is_not_a_generator_is_rejected() -> None:
    with raises("the sweep of mine::scale must be a generator: write `yield"):
        swept(lambda make: [("small", (make.randn(2),))])


def test_two_sizes_with_the_same_label_are_rejected() -> None:
    def sweep(make: Make) -> Iterator[Any]:
        yield "same", (make.randn(2),)
        yield "same", (make.randn(3),)

    with raises("the sweep of mine::scale has two sizes 'same': give each a unique label"):
        swept(sweep)


def test_a_sweep_selects_the_gradients_that_are_timed() -> None:
    op = described(joined)
    assert list(op.timed_gradients) == ["x", "y"]
    op.sweep(gradients=("y",))(lambda make: iter([("one", (make.randn(2), make.randn(2)))]))
    assert list(op.timed_gradients) == ["y"]
    assert op.has_sweep


def test_timing_a_gradient_that_does_not_exist_is_an_error() -> None:
    op = described(joined, differentiable=("x",))
    op.sweep(gradients=("y",))(lambda _: iter(()))
    with raises("the sweep of mine::joined times the gradient of 'y', which has none: expected some of x"):
        _ = op.timed_gradients


def test_a_floor_has_a_description_and_a_direction() -> None:
    op = described(joined)

    @op.floor("the bare sum")
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return torch.add(x, y)

    @op.floor("nothing", direction="backward")
    def backward(x: Tensor, y: Tensor) -> None:
        del x, y

    assert [(floor.what, floor.function) for floor in (op.floors["forward"], op.floors["backward"])] == [
        ("the bare sum", forward),
        ("nothing", backward),
    ]


def test_a_floor_with_wrong_parameters_is_rejected() -> None:
    with raises("the floor 'a sum' of mine::joined must have the operator's parameters, (x, y), but has (make)"):
        described(joined).floor("a sum")(lambda make: make)


@pytest.mark.parametrize("what", [joined, "", None])
def test_a_floor_without_a_description_is_rejected(what: Any) -> None:
    with raises('the floor of mine::joined has no description: write @joined.floor("the bare GEMMs")'):
        described(joined).floor(what)


def test_a_floor_in_an_unknown_direction_is_rejected() -> None:
    direction: Any = "backwards"
    with raises("the floor 'a sum' of mine::joined has direction 'backwards': expected 'forward' or 'backward'"):
        described(joined).floor("a sum", direction=direction)
