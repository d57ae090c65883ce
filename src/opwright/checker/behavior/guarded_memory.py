"""Calls the operator with arguments in read-only memory, directly before a page that cannot be read."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import is_far
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_libc = ctypes.CDLL(None, use_errno=True)
_NOTHING, _READ = 0, mmap.PROT_READ
_CASES = 40
_QUICK_CASES = 12
_MOST_BYTES = 2**24


def check_guarded_memory(subject: Subject, recorder: Recorder) -> None:
    """Call the operator with arguments at the end of read-only memory.

    A call that writes to an argument, even if it restores it, or that reads past its end, ends the process.
    """
    if subject.device != "cpu" or recorder.has(Kind.LATE):  # a late write would end the process in another step
        return
    count = _QUICK_CASES if subject.options.quick else _CASES
    cases = [*subject.samples, *(case for case in subject.varied if case.size is not None)][:count]
    for case in cases:
        if recorder.died_of(case.name, case.group) or subject.expected(case).refusal or not _fits(case):
            continue
        code = subject.code(case)
        for writable, kind, what in (
            (True, Kind.OUT_OF_BOUNDS, "before a page"),
            (False, Kind.WRITES_INPUT, "in read-only memory"),
        ):
            step = f"{case.name}: its arguments {what}"
            if not recorder.has(kind) and recorder.begin(step, code, kind, case.group):
                _call(subject, case, writable=writable)


def _fits(case: Case) -> bool:
    tensors = [leaf for leaf in pytree.tree_leaves(case.arguments) if isinstance(leaf, Tensor)]
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors) <= _MOST_BYTES and not any(map(is_far, tensors))


def _call(subject: Subject, case: Case, *, writable: bool) -> None:
    pages: list[_Pages] = []
    arguments = {
        name: value
        if name in subject.op.mutates
        else pytree.tree_map_only(Tensor, lambda one: _moved(one, pages), value)
        for name, value in case.fresh().items()
    }
    try:
        for one in pages:
            one.protect(writable=writable)
        subject.call(arguments)
    except Exception:
        return
    finally:
        for one in pages:
            one.unprotect()


def _moved(tensor: Tensor, pages: list[_Pages]) -> Tensor:
    """`tensor` with a copy of its memory in separate pages."""
    nbytes = tensor.untyped_storage().nbytes()
    if tensor.numel() == 0 or tensor.is_meta or tensor.is_conj() or tensor.is_neg():
        return tensor
    pages.append(_Pages(nbytes))
    storage = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    copy = pages[-1].tensor(nbytes).copy_(storage)
    elements = copy[nbytes % tensor.element_size() :].view(tensor.dtype)
    return elements.as_strided(tensor.shape, tensor.stride(), elements.storage_offset() + tensor.storage_offset())


class _Pages:
    """Memory that ends directly before a page that cannot be read.

    Args:
        nbytes: the number of bytes that are used.
    """

    def __init__(self, nbytes: int) -> None:
        self._size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, self._size + mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    def tensor(self, nbytes: int) -> Tensor:
        """The last `nbytes` before the guard page."""
        made = torch.frombuffer(self._memory, dtype=torch.uint8)
        return made[self._size - nbytes : self._size]

    def protect(self, *, writable: bool) -> None:
        """Make the guard page inaccessible, or the memory before it read-only."""
        if writable:
            self._set(self._start + self._size, mmap.PAGESIZE, _NOTHING)
        else:
            self._set(self._start, self._size, _READ)

    def unprotect(self) -> None:
        """Make everything accessible again."""
        self._set(self._start, self._size + mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)

    def _set(self, start: int, size: int, access: int) -> None:
        if _libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), access):
            raise OSError(ctypes.get_errno(), "mprotect")
