"""Compares the fake kernel with the real one: shapes, dtypes, devices, strides and aliasing."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils import _pytree as pytree

from opwright.checker.behavior.unbacked import FAKE_MODE_CODE, OpenSizes, fake_mode
from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.variation import choice, replaced, tensors
from opwright.checker.kinds import Kind
from opwright.checker.models import repro
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import described

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from opwright.checker.steps import Steps
    from opwright.checker.subject import Subject

# A fake kernel sees no values, so variations of values are left out. The eager runtime checks rejections.
_NUMBERS = {
    *(Family.MAGNITUDE, Family.EDGE, Family.NUMBER, Family.SPECIAL, Family.INTEGER, Family.SHARED, Family.FAR),
    Family.BAD_DEVICE,
}
# A quick check compares this many variations, about a millisecond each; a full check compares all, and pairs.
_QUICK_CASES = 110
# The number of random combinations of dtypes.
_MIXED = 40
_QUICK_MIXED = 12
_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)


def check_fake(steps: Steps) -> None:
    """Compare the fake kernel's results with the real ones for the samples and their variations."""
    subject, recorder = steps.subject, steps.recorder
    for case in subject.samples:
        _check(steps, case)
    if recorder.failed:
        return
    for case in _variations(subject):
        if not _check(steps, case):
            return


def _variations(subject: Subject) -> Iterator[Case]:
    """Yield variations of the samples, alternating between families, so that a few of them cover all families."""
    quick = subject.options.quick
    families: dict[Family, list[Case]] = {}
    for case in subject.varied:
        if case.family not in _NUMBERS:
            families.setdefault(case.family, []).append(case)
    choose = choice(subject.options.seed)
    families[Family.BAD_DTYPE] = [
        *families.get(Family.BAD_DTYPE, []),
        *_mixed_dtypes(subject, choose, _QUICK_MIXED if quick else _MIXED),
    ]
    drawn = [choose.sample(cases, len(cases)) if quick else cases for cases in families.values()]
    in_turn = (case for row in itertools.zip_longest(*drawn) for case in row if case is not None)
    yield from itertools.islice(in_turn, _QUICK_CASES if quick else None)
    if not quick:
        yield from subject.pairs()


def _mixed_dtypes(subject: Subject, choose: random.Random, count: int) -> Iterator[Case]:
    """Yield the first sample with a random dtype for each tensor; PyTorch's own operators would promote them."""
    sample = subject.samples[0]
    found = dict(tensors(sample.arguments))
    paths = [path for path, tensor in found.items() if not tensor.is_complex() and path not in subject.op.mutates]
    seen: set[tuple[torch.dtype, ...]] = {tuple(found[path].dtype for path in paths)}
    for _ in range(count if len(paths) > 1 else 0):
        dtypes = tuple(choose.choice([found[path].dtype, *_DTYPES]) for path in paths)
        if dtypes in seen:
            continue
        seen.add(dtypes)
        arguments = sample.arguments
        for path, dtype in zip(paths, dtypes, strict=True):
            arguments = replaced(arguments, path, found[path].to(dtype))
        listed = ", ".join(
            f"{path} in {str(dtype).removeprefix('torch.')}" for path, dtype in zip(paths, dtypes, strict=True)
        )
        case = Case(f"{sample.name}, {listed}", Family.BAD_DTYPE, arguments)
        if not subject.is_outside(case):
            yield case


def _check(steps: Steps, case: Case) -> bool:
    """Compare one case. Returns False if further cases would show nothing new."""
    subject, recorder = steps.subject, steps.recorder
    call = repro.instead(subject, case, _written)
    step = f"{case.name}, real and fake"
    if not recorder.begin(step, call, group=case.group):
        return True  # this case crashed an earlier process; others may work
    try:
        real = subject.call(case.fresh())
    except Exception as error:
        if case.family is Family.SAMPLE:
            steps.fail(step, call, error, Kind.RAISES)
        return True
    mode = fake_mode()
    arguments = pytree.tree_map_only(Tensor, mode.from_tensor, case.fresh())
    try:
        with mode:
            fake = subject.call(arguments)
    except Exception as error:
        # Either the reference rejects the call too, and the eager runtime reports that the kernel does not; or
        # torch.compile raises the same error, as for x[x > 0] with a single element.
        is_open = isinstance(error, DataDependentOutputException) and not case.claimed
        if is_open or subject.expected(case).refusal:
            return True
        steps.fail(step, call, error, Kind.FAKE_RAISES)
        return False
    found = _difference(real, fake, arguments, written=len(subject.op.mutates))
    if found is None:
        recorder.ok()
        return True
    kind, got, expected = found
    recorder.fail(Failure(kind, step, call, got=got, expected=expected))
    return False


def _difference(
    real: list[Any], fake: list[Any], arguments: dict[str, Any], written: int
) -> tuple[Kind, str, str] | None:
    """Return how the fake results differ from the real ones as (kind, got, expected); None if they agree."""
    pairs = list(itertools.zip_longest(pytree.tree_leaves(real), pytree.tree_leaves(fake)))
    sizes = OpenSizes(pairs)
    for at, (own, other) in enumerate(pairs):
        found = _leaf_difference(own, other, sizes)
        if found is not None:
            kind, got, expected = found
            which = f"result {at} of " if len(real) > 1 else ""
            return kind, f"{which}the fake kernel: {got}{sizes}", f"{which}the operator: {expected}"
    given = {tensor.untyped_storage()._cdata for tensor in derive.tensors(arguments)}
    returned = fake[: len(fake) - written]
    if any(tensor.untyped_storage()._cdata in given for tensor in derive.tensors(returned)):
        return Kind.ALIAS, "the fake kernel: a result that shares memory with an argument", "the operator: new memory"
    return None


def _leaf_difference(real: Any, fake: Any, sizes: OpenSizes) -> tuple[Kind, str, str] | None:
    if not isinstance(real, Tensor) or not isinstance(fake, Tensor):
        # A fake kernel returns only the type of a number; None must be None in both.
        same = type(real) is type(fake) and not isinstance(real, Tensor)
        return None if same else (Kind.FAKE_SHAPE, described(fake), described(real))
    if fake.dim() != real.dim() or not sizes.agree(fake.shape, real.shape):
        return Kind.FAKE_SHAPE, described(fake), described(real)
    if fake.dtype != real.dtype or fake.device != real.device:
        return Kind.FAKE_DTYPE, described(fake), described(real)
    # The stride of a dimension of size 1 is never used.
    own, other = (
        [stride for stride, size in zip(one.stride(), real.shape, strict=True) if size > 1] if real.numel() else []
        for one in (real, fake)
    )
    if not sizes.agree(other, own):
        return Kind.FAKE_STRIDES, f"strides {fake.stride()}", f"strides {real.stride()}, {described(real)}"
    return None


def _written(call: str) -> str:
    return f"real = {call}\nwith {FAKE_MODE_CODE}:\n    fake = {call}"
