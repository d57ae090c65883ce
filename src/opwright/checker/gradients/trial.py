"""A way to request gradients of a call: for some arguments, from some results, with some incoming gradients."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.variation import replaced, tensors
from opwright.checker.kinds import Kind
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opwright.checker.subject import Subject


class Incoming(enum.Enum):
    """A property of incoming gradients that a backward may not support, in words."""

    PLAIN = ""
    EXPANDED = "expanded, as from sum()"
    TRANSPOSED = "transposed"
    EVERY_SECOND = "every second element of a larger tensor"
    CHANNELS_LAST = "in channels last"
    ZERO = "zero"
    LARGE = "times 1e4"
    SMALL = "times 1e-4"


_LAYOUTS = {Incoming.EXPANDED, Incoming.TRANSPOSED, Incoming.EVERY_SECOND, Incoming.CHANNELS_LAST}
_FACTORS = {Incoming.ZERO: 0.0, Incoming.LARGE: 1e4, Incoming.SMALL: 1e-4}


@dataclass(frozen=True)
class Trial:
    """One way to request gradients.

    Attributes:
        case: the call.
        what: a description of the request.
        names: the arguments that require a gradient, such as `x`, or `xs[0]` for an element of a list; gradients are
            compared for those that op.py declares differentiable.
        used: the results that are used, by index among those that have a gradient; None for all.
        incoming: what is unusual about the incoming gradients.
    """

    case: Case
    what: str
    names: tuple[str, ...]
    used: tuple[int, ...] | None = None
    incoming: Incoming = Incoming.PLAIN

    @property
    def step(self) -> str:
        """The trial in words."""
        return f"{self.case.name}: {self.what}"

    @property
    def kind(self) -> Kind:
        """The kind of fault that a wrong gradient in this trial indicates."""
        if self.used is not None:
            return Kind.UNDEFINED_GRADIENT
        if self.incoming in _LAYOUTS or self.case.family is Family.STRIDES:
            return Kind.STRIDES
        return Kind.WRONG_GRADIENT


def with_leaves(case: Case, names: Iterable[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Copies of the arguments of `case`, and the leaves of the arguments `names`, which require a gradient, by path.

    Arguments that are the same tensor become one leaf, whose gradient is the sum of theirs.
    """
    arguments = case.fresh()
    originals = dict(tensors(case.arguments))
    known: dict[int, Tensor] = {}
    leaves: dict[str, Tensor] = {}
    for path, tensor in tensors(arguments):
        if derive.has_gradient(tensor) and is_among(path, names):
            leaves[path] = known.setdefault(id(originals[path]), tensor.detach().requires_grad_())
            arguments = replaced(arguments, path, leaves[path])
    return arguments, leaves


def is_among(path: str, names: Iterable[str]) -> bool:
    """Whether the tensor at `path` is one of `names`, or an element of one of them."""
    return path in names or path.partition("[")[0] in names


def gradients(subject: Subject, trial: Trial, grads: Sequence[Tensor | None]) -> dict[str, Tensor | None] | None:
    """The gradients that autograd computes, by path; None if no result requires one."""
    arguments, leaves = with_leaves(trial.case, trial.names)
    return pulled(derive.tensors(subject.call(arguments)), grads, leaves)


def pulled(
    results: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    leaves: Mapping[str, Tensor],
    *,
    retain_graph: bool = False,
) -> dict[str, Tensor | None] | None:
    """The gradients of `leaves` from the results of a call; None if no result requires one."""
    outputs, incoming = live(results, grads)
    if not outputs:
        return None
    inputs = list(dict.fromkeys(leaves.values()))
    found = torch.autograd.grad(outputs, inputs, incoming, allow_unused=True, retain_graph=retain_graph)
    by_leaf = dict(zip(inputs, found, strict=True))
    return {path: by_leaf[leaf] for path, leaf in leaves.items()}


def live(results: Sequence[Tensor], grads: Sequence[Tensor | None]) -> tuple[list[Tensor], list[Tensor]]:
    """The results that require a gradient and are used, and their incoming gradients."""
    pairs = [
        (result, grad) for result, grad in zip(results, grads, strict=True) if grad is not None and result.requires_grad
    ]
    return [result for result, _ in pairs], [grad for _, grad in pairs]


def incoming(subject: Subject, trial: Trial) -> list[Tensor | None]:
    """An incoming gradient for each tensor that the operator returns; None for integers and unused results."""
    generator = torch.Generator().manual_seed(subject.options.seed)
    grads: list[Tensor | None] = []
    number = 0
    for result in derive.tensors(list(subject.expected(trial.case).own)):
        if not derive.has_gradient(result):
            grads.append(None)
            continue
        shape = () if trial.incoming is Incoming.EXPANDED else result.shape
        wide = torch.complex128 if result.is_complex() else torch.float64
        drawn = torch.randn(shape, generator=generator, dtype=wide) * _FACTORS.get(trial.incoming, 1.0)
        used = trial.used is None or number in trial.used
        grads.append(_laid_out(drawn.to(result), result.shape, trial.incoming) if used else None)
        number += 1
    return grads


def applies(incoming: Incoming, results: Sequence[Tensor]) -> bool:
    """Whether one of the `results` can have such an incoming gradient."""
    ranks = [result.dim() for result in results if derive.has_gradient(result) and result.numel() > 1]
    least = {Incoming.TRANSPOSED: 2, Incoming.EVERY_SECOND: 1, Incoming.CHANNELS_LAST: 4}.get(incoming, 0)
    return any(rank == least if incoming is Incoming.CHANNELS_LAST else rank >= least for rank in ranks)


def _laid_out(grad: Tensor, shape: torch.Size, incoming: Incoming) -> Tensor:
    if incoming is Incoming.EXPANDED:
        return grad.expand(shape)
    if incoming is Incoming.TRANSPOSED and grad.dim() > 1:
        return grad.transpose(0, -1).contiguous().transpose(0, -1)
    if incoming is Incoming.EVERY_SECOND and grad.dim():
        # NaN in the gaps, which a backward that ignores strides reads.
        return torch.stack((grad, torch.full_like(grad, float("nan"))), -1)[..., 0]
    if incoming is Incoming.CHANNELS_LAST and grad.dim() == 4:
        return grad.contiguous(memory_format=torch.channels_last)
    return grad
