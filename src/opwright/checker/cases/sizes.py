"""Finds the sizes in an operator's samples that a check can vary, and varies them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opwright.checker.cases.case import Case, size_family
from opwright.checker.cases.launch_sizes import launch_sizes
from opwright.checker.cases.samples import MOST_DRAWN, elements_in, redrawn
from opwright.checker.cases.variation import choice
from opwright.spec import Make, derive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import torch

    from opwright.checker.job import Options
    from opwright.spec import Op

# Sizes around vector widths and block sizes.
_SIZES = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 9),
    *(n + d for n in (16, 32, 64, 128, 256, 512, 1024) for d in (-1, 0, 1)),
    4096,
    4099,
)
_QUICK_SIZES = (0, 1, 2, 8, 9, 17, 64, 256)
# Kernels often have separate branches for no elements and for one element.
_FEWEST = (0, 1)
# The numbers of elements and rows from which PyTorch's parallel_for splits its range, whatever its grain size.
_SPLIT_ELEMENTS = 2**17
SPLIT_ROWS = 70001
_MOST_ELEMENTS = 2**21
# A kernel that recurses for each neighbor, or for each part of a sorted row, overflows its stack with this many.
_DEEP_ELEMENTS = 2**18
# When one size exceeds the limits of a launch, the others are at most this, so that the call fits on the GPU.
_SMALL = 2
_MOST_ELEMENTS_ON_A_GPU = 2**23
_MOST_SIZES_VARIED = 6
# The limit in CPU time for drawing all of them; each is limited too.
_ALL_SECONDS = 40.0
_SIZE_PAIRS = 24
_QUICK_SIZE_PAIRS = 6


@dataclass(frozen=True)
class SizeSlot:
    """A size in the samples that can be varied.

    Attributes:
        name: a description of the size.
        default: the author's size.
        key: the argument of `Make` that sets it: `sizes` or `literals`.
        number: its key in that argument.
    """

    name: str
    default: int
    key: str
    number: int

    def resized(self, size: int) -> dict[str, Any]:
        """The arguments of `Make` for size `size`."""
        return {self.key: {self.number: size}}


def size_slots(op: Op, device: str, seed: int) -> list[SizeSlot]:
    """The sizes that can be varied: those that the samples request or, if there are none, their literals."""
    probe = Make(seed=seed, device=device)
    for _ in op.draw(probe):
        pass
    if probe.sizes_asked:
        return [SizeSlot(f"size {at + 1}", default, "sizes", at) for at, default in enumerate(probe.sizes_asked)]
    return [SizeSlot(f"size {literal}", literal, "literals", literal) for literal in probe.literals_seen]


class Resizer:
    """Draws an operator's samples with other sizes.

    Args:
        op: the operator.
        given: its samples with their own sizes.
        device: the device of the tensors.
        options: the options of the check.

    Attributes:
        slots: the sizes that are varied, at most six.
    """

    def __init__(self, op: Op, given: Sequence[Case], device: str, options: Options) -> None:
        self.slots = size_slots(op, device, options.seed)[:_MOST_SIZES_VARIED]
        self._op = op
        self._given = given
        self._device = device
        self._options = options
        self._seconds = 0.0

    def usual(self, chosen: Sequence[int], others: Sequence[int]) -> Iterator[Case]:
        """Yield samples with sizes around those of vectors, blocks and threads, one or two sizes at a time.

        Args:
            chosen: the indices of the samples.
            others: the indices of further samples. For a size that no chosen sample has, the first of these with it is
                varied.
        """
        quick = self._options.quick
        elements = [max(elements_in(self._given[at].arguments), 1) for at in chosen]
        elsewhere = []
        for slot in self.slots:
            # Separate for each sample: the size that splits the range of a small one is too large for the others.
            split = dict.fromkeys(_splitting(slot, count) for count in elements)
            large = (*split,) if quick else (*split, SPLIT_ROWS)
            tried = [{slot: size} for size in (*(_QUICK_SIZES if quick else _SIZES), *large)]
            made = list(self.with_sizes(chosen, tried))
            yield from made
            if not made:
                elsewhere.append(tried)
        yield from self.with_sizes(chosen, self._two())
        for tried in elsewhere:
            found = (list(self.with_sizes([at], tried)) for at in others)
            yield from next(filter(None, found), [])

    def fewest(self, chosen: Sequence[int]) -> Iterator[Case]:
        """Yield the samples `chosen` with each size as 0 and as 1."""
        return self.with_sizes(chosen, [{slot: size} for slot in self.slots for size in _FEWEST])

    def beyond_launches(self, at: int) -> Iterator[Case]:
        """Yield sample `at` with each size in turn beyond the limits of a CUDA launch."""
        widths = {tensor.element_size() for tensor in derive.tensors(self._given[at].arguments)} or {1}
        for slot in self.slots:
            others = {other: min(other.default, _SMALL) for other in self.slots if other.default > _SMALL}
            tried = [{**others, slot: size} for width in sorted(widths) for size in launch_sizes(width)]
            yield from self.with_sizes([at], tried, _MOST_ELEMENTS_ON_A_GPU)

    def split(self, at: int) -> Iterator[Case]:
        """Yield sample `at` with each size in turn so large that threads split the elements."""
        count = max(elements_in(self._given[at].arguments), 1)
        return self.with_sizes([at], [{slot: _splitting(slot, count)} for slot in self.slots])

    def deepest(self, at: int) -> Iterator[Case]:
        """Yield sample `at` with enough elements that recursing from each to the next overflows the stack."""
        count = max((tensor.numel() for tensor in derive.tensors(self._given[at].arguments)), default=0) or 1
        return self.with_sizes([at], [{slot: _DEEP_ELEMENTS * max(slot.default, 1) // count} for slot in self.slots])

    def with_sizes(
        self, chosen: Sequence[int], tried: Iterable[dict[SizeSlot, int]], most_elements: int = _MOST_ELEMENTS
    ) -> Iterator[Case]:
        """Yield the samples `chosen` with each of the sizes `tried` that change them, up to `most_elements`."""
        needed = self._given[: max(chosen, default=-1) + 1]
        most = max([most_elements, *(elements_in(case.arguments) for case in needed)])
        for sizes in tried:
            if self._seconds > _ALL_SECONDS or all(size == slot.default for slot, size in sizes.items()):
                continue
            resized: dict[str, dict[int, int]] = {}
            for slot, size in sizes.items():
                resized.setdefault(slot.key, {})[slot.number] = size
            make = Make(
                seed=self._options.seed,
                device=self._device,
                most_elements=most,
                **resized,  # type: ignore[arg-type]
            )
            started = time.process_time()
            made = redrawn(self._op, make, len(needed), MOST_DRAWN)
            self._seconds += time.process_time() - started
            what = " and ".join(f"{slot.name} as {size}" for slot, size in sizes.items())
            for at in chosen:
                case = self._given[at]
                if at >= len(made) or _shapes_of(made[at]) == _shapes_of(case.arguments):
                    continue
                if elements_in(made[at]) <= most_elements:
                    family = size_family(min(sizes.values()))
                    alone = [(f"{case.name}, {slot.name}", size) for slot, size in sizes.items()]
                    yield Case(f"{case.name}, {what}", family, made[at], size=alone[0] if len(alone) == 1 else None)

    def _two(self) -> Iterator[dict[SizeSlot, int]]:
        """Choose two sizes at random, so that sizes that were equal, or multiples of each other, become independent."""
        choose = choice(self._options.seed)
        some = [size for size in _SIZES if 0 < size <= 129]
        count = _QUICK_SIZE_PAIRS if self._options.quick else _SIZE_PAIRS
        for _ in range(count if len(self.slots) > 1 else 0):
            yield dict(zip(choose.sample(self.slots, 2), choose.sample(some, 2), strict=True))


def _splitting(slot: SizeSlot, count: int) -> int:
    """The size with which threads split the elements of a sample that has `count` of them with its own size."""
    return -(-_SPLIT_ELEMENTS * max(slot.default, 1) // count) | 1


def _shapes_of(arguments: dict[str, Any]) -> list[torch.Size]:
    return [tensor.shape for tensor in derive.tensors(arguments)]
