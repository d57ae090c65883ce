"""Tests of the faults in gradients that trials find, by what they vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from opwright.checker.cases.case import Family
from opwright.checker.gradients.choice import trials
from opwright.checker.kinds import Kind
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.checker.gradients.conftest import Judge


def kernel(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a gradient: `backward` receives the context, the incoming gradient and the saved arguments."""

    class _Function(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.save_for_backward(*args)
            return forward(*args)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return backward(ctx, *grads, *ctx.saved_tensors)

    return _Function.apply


def _without_strides(g: Tensor) -> Tensor:
    return g if g.is_contiguous() or 0 in g.stride() else g.as_strided(g.shape, (g.shape[1], 1))


def product(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x * y * z


def of_product(_: Any, g: Tensor, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    return g * y * z, g * x * z, g * x * y


def wrong_in_a_pair(ctx: Any, g: Tensor, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor | None, ...]:
    if ctx.needs_input_grad == (True, False, True):
        return g * y * z, None, g * x
    return of_product(ctx, g, x, y, z)


THREE: dict[str, Any] = {
    "samples": "make.randn(4, 5), make.randn(4, 5), make.randn(4, 5)",
    "parameters": "x: Tensor, y: Tensor, z: Tensor",
}


def test_a_gradient_that_is_wrong_only_if_two_of_three_are_requested_is_found(judge: Judge) -> None:
    (failure,) = judge("x * y * z", kernel=kernel(product, wrong_in_a_pair), **THREE).failures
    assert failure.kind is Kind.WRONG_GRADIENT
    assert failure.case == "sample 1: the gradients of x and z alone"
    assert failure.got.startswith("the gradient of z: ")
    assert judge("x * y * z", kernel=kernel(product, of_product), **THREE).failures == ()


@pytest.mark.parametrize(
    ("reference", "forward", "wrong", "right"),
    [
        ("x.relu()", torch.relu, lambda g, x: g * (x >= 0), lambda g, x: g * (x > 0)),
        ("x.abs()", torch.abs, lambda g, x: g.where(x >= 0, -g), lambda g, x: g * x.sign()),
        (
            "x.clamp(-1.0, 1.0)",
            lambda x: x.clamp(-1.0, 1.0),
            lambda g, x: g * (x.abs() < 1),
            lambda g, x: g * (x.abs() <= 1),
        ),
        (
            "x.amax(-1)",
            lambda x: x.amax(-1),
            lambda g, x: g[..., None] * (x == x.amax(-1, keepdim=True)),
            lambda g, x: (g / (x == x.amax(-1, keepdim=True)).sum(-1))[..., None] * (x == x.amax(-1, keepdim=True)),
        ),
    ],
)
def test_a_gradient_that_is_wrong_at_zeros_at_ties_or_at_a_bound_is_found(
    judge: Judge, reference: str, forward: Any, wrong: Any, right: Any
) -> None:
    for gradient, count in ((wrong, 1), (right, 0)):
        found = judge(
            reference, "make.randn(4, 6)", kernel(forward, lambda _, g, x, gradient=gradient: gradient(g, x))
        ).failures
        assert [failure.kind for failure in found][:1] == [Kind.WRONG_GRADIENT] * count


def test_any_gradient_passes_where_the_reference_has_no_finite_derivative(judge: Judge) -> None:
    def safe(_: Any, g: Tensor, x: Tensor) -> Tensor:
        return torch.where(x == 0, 0.0, g / (2 * x.abs().sqrt()) * x.sign())

    found = judge("x.abs().sqrt()", "make.randn(4, 6)", kernel(lambda x: x.abs().sqrt(), safe))
    assert found.failures == ()


def test_other_gradients_pass_if_those_of_the_reference_depend_on_the_layout(judge: Judge) -> None:
    chooses = "x * (1.0 if x.is_contiguous() else 2.0)"
    assert judge(chooses, "make.randn(4, 5)", kernel(lambda x: x * 1.0, lambda _, g, x: g)).failures == ()
    once = kernel(lambda x: x * 1.0, lambda _, g, x: g if x.is_contiguous() else 2 * g)
    (failure,) = judge("x * 1.0", "make.randn(4, 5)", once).failures
    assert failure.kind is Kind.STRIDES
    (failure,) = judge(chooses, "make.randn(4, 5)", kernel(lambda x: x * 1.0, lambda _, g, x: 3 * g)).failures
    assert failure.kind is Kind.WRONG_GRADIENT


@pytest.mark.parametrize(("conjugated", "count"), [(False, 1), (True, 0)])
def test_the_gradient_of_a_complex_operator_is_conjugated(judge: Judge, conjugated: bool, count: int) -> None:
    def backward(_: Any, g: Tensor, x: Tensor) -> Tensor:
        return 2 * g * (x.conj() if conjugated else x)

    samples = "torch.complex(make.randn(5), make.randn(5))"
    found = judge("x * x", samples, kernel(lambda x: x * x, backward)).failures
    assert [failure.kind for failure in found] == [Kind.WRONG_GRADIENT] * count


@pytest.mark.parametrize(
    ("read", "kind", "how"),
    [
        (_without_strides, Kind.STRIDES, "the incoming gradient transposed"),
        (lambda g: g.clamp(-100, 100), Kind.WRONG_GRADIENT, "the incoming gradient times 1e4"),
        (lambda g: g.where(g.abs() > 1e-3, 0.0), Kind.WRONG_GRADIENT, "the incoming gradient times 1e-4"),
    ],
)
def test_a_backward_that_mishandles_unusual_incoming_gradients_is_found(
    judge: Judge, read: Any, kind: Kind, how: str
) -> None:
    samples = "make.randn(4, 6).clamp_min(0.01)" if kind is Kind.STRIDES else "make.randn(4, 6)"

    def backward(_: Any, g: Tensor, x: Tensor) -> Tensor:
        return (read(g) if g.dim() == 2 and g.numel() == 24 else g) * x.cos()

    faults = judge("x.sin()", samples, kernel(torch.sin, backward)).failures
    if "1e-4" in how:  # a few of the unscaled ones are that small too
        assert faults
        return
    assert faults[0].kind is kind
    assert how in faults[0].case
    assert judge("x.sin()", samples, kernel(torch.sin, lambda _, g, x: g * x.cos())).failures == ()


def test_gradients_of_arguments_that_are_the_same_tensor_add_up(judge: Judge) -> None:
    def once(_: Any, g: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        same = x.data_ptr() == y.data_ptr()
        return g * y.conj(), torch.zeros_like(x) if same else g * x.conj()

    two: dict[str, Any] = {"samples": "make.randn(4, 5), make.randn(4, 5)", "parameters": "x: Tensor, y: Tensor"}
    (failure,) = judge("x * y", kernel=kernel(lambda x, y: x * y, once), **two).failures
    assert failure.case == "sample 1, x and y the same tensor: all gradients"
    assert (
        judge(
            "x * y", kernel=kernel(lambda x, y: x * y, lambda _, g, x, y: (g * y.conj(), g * x.conj())), **two
        ).failures
        == ()
    )


def test_each_result_is_used_alone_and_for_each_argument_alone(make_subject: MakeSubject) -> None:
    three = "tuple[Tensor, Tensor, Tensor]"
    text = operator("x: Tensor, y: Tensor", "x * y, x + y, x - y", "make.randn(3), make.randn(3)", results=three)
    subject = make_subject(text)
    made = [(trial.used, trial.names) for trial in trials(subject, subject.samples) if trial.used is not None]
    assert {used for used, names in made if names == ("x", "y")} == {(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)}
    assert {names for used, names in made if used == (1,)} == {("x", "y"), ("x",), ("y",)}


@pytest.mark.parametrize(("quick", "most", "least_pairs"), [(True, 60, 4), (False, 320, 10)])
def test_the_number_of_trials_is_bounded_and_the_seed_determines_them(
    make_subject: MakeSubject, quick: bool, most: int, least_pairs: int
) -> None:
    parameters = "a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor"
    five = operator(parameters, "a * b + c * d * e", "tuple(make.randn(3, 4) for _ in range(5))")
    listed = []
    for _ in range(2):
        subject = make_subject(five, quick=quick)
        made = list(trials(subject, subject.samples))
        assert len(made) <= most
        assert len({trial.step for trial in made}) == len(made)
        assert sum(len(trial.names) == 2 and trial.case.family is Family.SAMPLE for trial in made) >= least_pairs
        assert {Family.EDGE, Family.SIZE, Family.EMPTY, Family.SHARED} <= {trial.case.family for trial in made}
        listed.append([trial.step for trial in made])
    assert listed[0] == listed[1]


@pytest.mark.sample(4)
@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("reference", "parameters", "samples"),
    [
        (
            "sum((t * t for t in xs if t is not None), y)",
            "xs: Sequence[Tensor | None], y: Tensor",
            "[make.randn(4), None], make.randn(4)",
        ),
        ("x.t() + y", "x: Tensor, y: Tensor", "make.randn(4, 4), make.randn(4, 4)"),
        ("x[i].cumsum(0)", "x: Tensor, i: Tensor", "make.randn(6), make.randint(0, 6, 9)"),
        ("torch.complex(x, y).angle()", "x: Tensor, y: Tensor", "make.randn(6), make.randn(6)"),
        ("x.softmax(-1) * x.norm()", "x: Tensor", "make.randn(4, 7)"),
        ("x.to(torch.float64).prod(-1).to(x.dtype)", "x: Tensor", "make.randn(3, 4)"),
        ("x.sort(-1).values.diff(dim=-1)", "x: Tensor", "make.randn(3, 8)"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_correct_operators_pass(judge: Judge, reference: str, parameters: str, samples: str, seed: int) -> None:
    passed = judge(reference, samples, parameters=parameters, quick=bool(seed), seed=seed)
    assert passed.failures == ()
    assert passed.cases > 30
