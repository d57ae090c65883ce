"""Calls the operator with arguments in read-only memory, and directly before or after an inaccessible page."""

from __future__ import annotations

import ctypes
import enum
import mmap
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Family, is_far
from opwright.checker.cases.variation import choice
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_libc = ctypes.CDLL(None, use_errno=True)
_NOTHING, _READ = 0, mmap.PROT_READ
_CASES = 40
_QUICK_CASES = 12
# Further cases, drawn from the variations of values and layouts, which are not called with read-only memory.
_DRAWN = 400
_QUICK_DRAWN = 40
_LAYOUTS = (Family.STRIDES, Family.OFFSET)
_BAD = (Family.BAD_DTYPE, Family.BAD_RANK, Family.BAD_DEVICE, Family.FAR)
_MOST_BYTES = 2**24


class _Place(enum.Enum):
    """Where the arguments of a call are placed."""

    BEFORE_A_PAGE = "before a page"
    AFTER_A_PAGE = "after a page"
    READ_ONLY = "in read-only memory"


def check_guarded_memory(subject: Subject, recorder: Recorder) -> None:
    """Call the operator with arguments at the end and at the start of guarded memory, and in read-only memory.

    A call that writes to an argument, even if it restores it, or that reads out of bounds, crashes the process.
    """
    if subject.device != "cpu" or recorder.has(Kind.LATE):  # a late write would crash the process in another step
        return
    quick = subject.options.quick
    cases = [*subject.samples, *(case for case in subject.varied if case.size is not None)]
    first = cases[: _QUICK_CASES if quick else _CASES]
    # A kernel that ignores strides reads past the end of an expanded tensor, which is not a new fault.
    left_out = (*_BAD, *(_LAYOUTS if recorder.has(Kind.STRIDES, Kind.OFFSET) else ()))
    others = [case for case in subject.varied if case.size is None and case.family not in left_out]
    count = min(_QUICK_DRAWN if quick else _DRAWN, len(others))
    drawn = choice(subject.options.seed).sample(others, count)
    for case in (*first, *drawn):
        if recorder.died_of(case.name, case.group) or subject.expected(case).refusal or not _fits(case):
            continue
        code = subject.code(case)
        for place in _Place if case in first else (_Place.BEFORE_A_PAGE, _Place.AFTER_A_PAGE):
            kind = Kind.WRITES_INPUT if place is _Place.READ_ONLY else Kind.OUT_OF_BOUNDS
            step = f"{case.name}: its arguments {place.value}"
            if not recorder.has(kind) and recorder.begin(step, code, kind, case.group):
                _call(subject, case, place)


def _fits(case: Case) -> bool:
    tensors = [leaf for leaf in pytree.tree_leaves(case.arguments) if isinstance(leaf, Tensor)]
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors) <= _MOST_BYTES and not any(map(is_far, tensors))


def _call(subject: Subject, case: Case, place: _Place) -> None:
    pages: list[_Pages] = []
    arguments = {
        name: value
        if name in subject.op.mutates
        else pytree.tree_map_only(Tensor, lambda one: _moved(one, pages, place), value)
        for name, value in case.fresh().items()
    }
    try:
        for one in pages:
            one.protect(writable=place is not _Place.READ_ONLY)
        subject.call(arguments)
    except Exception:
        return
    finally:
        for one in pages:
            one.unprotect()


def _moved(tensor: Tensor, pages: list[_Pages], place: _Place) -> Tensor:
    """A view like `tensor` of a copy of its memory in separate pages."""
    nbytes = tensor.untyped_storage().nbytes()
    if tensor.numel() == 0 or tensor.is_meta or tensor.is_conj() or tensor.is_neg():
        return tensor
    pages.append(_Pages(nbytes))
    storage = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    copy = pages[-1].tensor(nbytes, at_start=place is _Place.AFTER_A_PAGE).copy_(storage)
    # An odd number of bytes at the end of the pages would misalign the elements.
    elements = copy[0 if place is _Place.AFTER_A_PAGE else nbytes % tensor.element_size() :]
    whole = elements[: elements.numel() // tensor.element_size() * tensor.element_size()].view(tensor.dtype)
    return whole.as_strided(tensor.shape, tensor.stride(), whole.storage_offset() + tensor.storage_offset())


class _Pages:
    """Memory between two inaccessible pages.

    Args:
        nbytes: the number of bytes to use.
    """

    def __init__(self, nbytes: int) -> None:
        self._size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, self._size + 2 * mmap.PAGESIZE, flags=flags)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    def tensor(self, nbytes: int, *, at_start: bool) -> Tensor:
        """The first or last `nbytes` between the guard pages."""
        first = mmap.PAGESIZE if at_start else mmap.PAGESIZE + self._size - nbytes
        return torch.frombuffer(self._memory, dtype=torch.uint8)[first : first + nbytes]

    def protect(self, *, writable: bool) -> None:
        """Make the guard pages inaccessible, or the memory between them read-only."""
        if not writable:
            self._set(self._start + mmap.PAGESIZE, self._size, _READ)
            return
        for page in (0, mmap.PAGESIZE + self._size):
            self._set(self._start + page, mmap.PAGESIZE, _NOTHING)

    def unprotect(self) -> None:
        """Make everything accessible again."""
        self._set(self._start, self._size + 2 * mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)

    def _set(self, start: int, size: int, access: int) -> None:
        if _libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), access):
            raise OSError(ctypes.get_errno(), "mprotect")
