"""The author's calls of an operator, drawn from its samples."""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.cost import SizeLimitAhead, TooExpensiveError
from opwright.errors import SpecError
from opwright.spec import Make, derive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opwright.spec import Op

# The maximum number of elements of intermediate tensors that samples make, such as a mask, when sizes vary.
MOST_DRAWN = 2**25
# The limit in CPU time: samples of a gradient run the reference, which may loop over a size.
_SECONDS = 2.0


def samples(op: Op, device: str, seed: int) -> list[Case]:
    """Return the author's calls.

    Raises:
        SpecError: there are none, they do not match the operator, or one is outside its domain.
    """
    with _seeded(seed, device):
        cases = [
            Case(f"sample {number}", Family.SAMPLE, op.bind(sample), claimed=True)
            for number, sample in enumerate(op.draw(Make(seed=seed, device=device)), 1)
        ]
    if not cases:
        msg = f"the samples of {op.qualified_name} yield nothing: yield the arguments of at least one call"
        raise SpecError(msg)
    _check_domain(op, cases)
    return cases


def errors(op: Op, device: str, seed: int) -> list[tuple[str, Case]]:
    """Return the calls that the author claims to raise an error, each with part of its message.

    Raises:
        SpecError: they do not match the operator, or are outside its domain, where its behavior is undefined.
    """
    with _seeded(seed, device):
        made = [
            (message, Case(f"error {number}", Family.SAMPLE, op.bind(sample)))
            for number, (message, sample) in enumerate(op.draw_errors(Make(seed=seed, device=device)), 1)
        ]
    _check_domain(op, [case for _, case in made])
    return made


def _check_domain(op: Op, cases: Sequence[Case]) -> None:
    """Raise `SpecError` if a call that the author claims is outside the domain."""
    for case in cases if op.has_domain else ():
        if outside := op.why_outside(case.fresh()):
            msg = f"{case.name} of {op.qualified_name} is outside its domain: {outside}. Change the call or the domain"
            raise SpecError(msg)


@contextlib.contextmanager
def _seeded(seed: int, device: str) -> Iterator[None]:
    """Seed the other generators that samples may use, so that each process of a check draws the same samples."""
    numpy = sys.modules.get("numpy")
    of_python, of_numpy = random.getstate(), numpy and numpy.random.get_state()
    with torch.random.fork_rng([] if device == "cpu" else range(torch.cuda.device_count())):
        random.seed(seed)
        torch.manual_seed(seed)
        if numpy:
            numpy.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(of_python)
            if numpy:
                numpy.random.set_state(of_numpy)


def by_size(given: list[Case]) -> list[int]:
    """The indices of the samples in `given`, the one with the fewest elements first."""
    return sorted(range(len(given)), key=lambda at: elements_in(given[at].arguments))


def redrawn(op: Op, make: Make, count: int, most_elements: int | None = None) -> list[dict[str, Any]]:
    """Return the arguments of the first `count` samples, made with another `make`; fewer if samples fail.

    Args:
        op: the operator.
        make: makes the tensors.
        count: the number of samples.
        most_elements: the maximum number of elements of any tensor that samples make, even without `make`. With a
            maximum, the time is limited too; None means no limits.
    """
    made = []
    limit = contextlib.nullcontext() if most_elements is None else SizeLimitAhead(most_elements, _SECONDS)
    with contextlib.suppress(Exception, TooExpensiveError), limit:
        for sample in itertools.islice(op.draw(make), count):
            made.append(op.bind(sample))  # noqa: PERF401  those before an exception are kept
    return made


def constants(case: Case) -> list[Any]:
    """What calls must have in common to share a graph or a batch: everything except the values in their tensors."""
    leaves, structure = pytree.tree_flatten(case.arguments)
    return [structure, *((leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in leaves)]


def elements_in(arguments: dict[str, Any]) -> int:
    """The total number of elements in the tensors of a call."""
    return sum(tensor.numel() for tensor in derive.tensors(arguments))
