"""Several sets of arguments for the calls of one size, whose contents change between blocks of calls."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.bencher.clocks import seconds_now
from opwright.bencher.storages import address, storages
from opwright.spec import derive
from opwright.spec.difference import first_line
from opwright.spec.tensor_bytes import bytes_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.bencher.draws import Draws
    from opwright.bencher.subject import Subject

# All sets together fit into a cache near the core, as the arguments of repeated calls of this size would. On a GPU they
# fit into its last-level cache.
_POOL_BYTES = {"cpu": 2**21, "cuda": 2**25}
_MOST_SETS = 32
# The minimum number of sets, so that a block has more than one short call; two if a set takes much memory.
_FEWEST_SETS = 4
_LARGE_BYTES = 2**24
# The number of elements that are moved at a time, so that large tensors need no full copy.
_CHUNK_ELEMENTS = 2**20
# The fraction of the time that new draws may take, if new contents cannot be made from the existing ones.
_DRAWING_SHARE = 0.1
# An integer dtype for each element size.
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# A smaller tensor may be a matrix that must be invertible, or a list of options.
_FEWEST_ROTATED = 64

# Seeded from the system's entropy: a kernel cannot predict the contents of its next call.
_entropy = random.SystemRandom()


class Contents:
    """Sets of arguments of one size, each with its own memory.

    `renew` gives each set the contents of another one. Then it exchanges some elements, if they are independent random
    numbers; otherwise it occasionally redraws a set with a new seed.

    Args:
        subject: the first set: the subject itself, with the arguments with which it was verified.
        draws: draws the other sets.

    Attributes:
        subjects: the sets.
        fixed: why the contents cannot change; empty if they can.
        is_large: whether a set takes so much memory that there are only two.
    """

    def __init__(self, subject: Subject, draws: Draws) -> None:
        self.fixed = ""
        self._draws = draws
        self._drawing_s = 0.0
        self._started = seconds_now()
        size = sum(storage.nbytes for storage in storages_of(subject))
        self.is_large = size > _LARGE_BYTES
        fewest = 2 if self.is_large else _FEWEST_SETS
        count = max(fewest, min(_MOST_SETS, _POOL_BYTES[subject.device] // max(1, size)))
        drawn = [draws.draw(_entropy.getrandbits(48)) for _ in range(count - 1)]
        others = [subject.twin(draw.arguments) for draw in drawn]
        if any(_layout(one.arguments) != _layout(subject.arguments) for one in others):
            self.fixed = "its shapes or numbers depend on the seed"
        self._is_constant = not self.fixed and all(
            map(_same, *(storages(one.arguments) for one in (subject, others[0])))
        )
        if self._is_constant:
            self.fixed = _rotate_constants(subject, others)
        if self.fixed:
            others = [subject.twin(subject.fresh()) for _ in others]
        self.subjects = [subject, *others]
        slots = zip(*(storages_of(one) for one in self.subjects), strict=True)
        # A constant has the same contents in every draw.
        self._slots = [slot for slot in slots if not _same(*slot[:2])]
        independent = drawn[0].independent | set(map(address, storages(others[0].gradients.grads)))
        self._can_mix = self._is_constant or all(address(slot[1]) in independent for slot in self._slots)

        self._known_checksums = self._checksums()

    def renew(self) -> None:
        """Change the contents of every set."""
        for slot in self._slots:
            count = slot[0].numel()
            first = _entropy.randrange(count) if self._can_mix else count
            _rotate_sets(slot, first, _entropy.randint(first, count))
        if not self._can_mix:
            self._draw_one()

    def restore(self) -> None:
        """Redraw all sets if a call wrote to one: `renew` only moves elements between sets."""
        if self.fixed or self._checksums() == self._known_checksums:
            return
        for subject in self.subjects:
            self._fill(subject)
            for grad in subject.gradients.incoming:
                grad.normal_()
        if self._is_constant:
            _rotate_constants(self.subjects[0], self.subjects[1:])
        self._known_checksums = self._checksums()

    def _fill(self, subject: Subject) -> None:
        """Fill one set with the contents of a new draw."""
        drawn = self._draws.draw(_entropy.getrandbits(48)).arguments
        if _layout(drawn) == _layout(subject.arguments):
            for storage, new in zip(storages(subject.arguments), storages(drawn), strict=True):
                storage.copy_(new)

    def _checksums(self) -> list[int]:
        """The sum of all elements of each slot, read as integers of the same size."""
        return [
            sum(int(flat.view(_INTEGERS[min(8, flat.itemsize)]).sum()) % 2**64 for flat in slot) % 2**64
            for slot in self._slots
        ]

    def _draw_one(self) -> None:
        """Redraw one set, unless drawing has already used up its fraction of the time."""
        started = seconds_now()
        if self._drawing_s > _DRAWING_SHARE * (started - self._started):
            return
        self.restore()
        self._fill(_entropy.choice(self.subjects))
        self._known_checksums = self._checksums()
        self._drawing_s += seconds_now() - started


def storages_of(subject: Subject) -> list[Tensor]:
    """The memory of all arguments and incoming gradients, as flat tensors without duplicates."""
    return storages([subject.arguments, subject.gradients.grads])


def _layout(arguments: dict[str, Any]) -> list[Any]:
    """A description of a call's arguments; two calls can exchange contents if it is equal."""
    addresses = list(dict.fromkeys(map(address, derive.tensors(arguments))))

    def described(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        storage = leaf.untyped_storage()
        place = (addresses.index(address(leaf)), storage.nbytes(), leaf.storage_offset())
        return leaf.dtype, leaf.shape, leaf.stride(), place

    leaves, structure = pytree.tree_flatten(arguments)
    return [str(structure), *map(described, leaves)]


def _rotate_constants(subject: Subject, others: Sequence[Subject]) -> str:
    """Give each set different contents for constants, such as a photograph, by rotating their elements.

    Returns the reason if that is not possible. Small tensors, such as a matrix, and integers, which may be indices,
    keep their contents.
    """
    moved = False
    for one in others:
        for storage in storages(one.arguments):
            if storage.numel() >= _FEWEST_ROTATED and (storage.is_floating_point() or storage.dtype == torch.uint8):
                storage.copy_(storage.roll(_entropy.randrange(1, storage.numel())))
                moved = True
    if not moved:
        return "it has no random argument"
    try:
        with torch.no_grad():
            subject.call(subject.op.reference, others[0].fresh())
    except Exception as error:
        return f"it has no random argument, and the reference rejects others: {first_line(error)}"
    return ""


def _rotate_sets(slot: Sequence[Tensor], first: int, end: int) -> None:
    """Give each set the elements of the next one, and those from `first` to `end` of the one after that."""
    count = slot[0].numel()
    step = max(1, _CHUNK_ELEMENTS // len(slot))
    for start in range(0, count, step):
        parts = slot if count <= step else [flat[start : start + step] for flat in slot]
        moved = torch.stack(list(parts)).roll(-1, 0)
        window = moved[:, max(0, first - start) : max(0, end - start)]
        window.copy_(window.roll(-1, 0))
        for part, elements in zip(parts, moved.unbind(), strict=True):
            part.copy_(elements)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.numel() == other.numel() and bytes_equal(one, other)
