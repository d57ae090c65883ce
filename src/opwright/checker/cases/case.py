"""One call of an operator that a check makes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from opwright.spec import derive


class Family(enum.Enum):
    """What a case varies compared with its sample."""

    SAMPLE = "sample"
    DTYPE = "dtype"
    STRIDES = "strides"
    OFFSET = "offset"
    SIZE = "size"
    EMPTY = "empty"
    UNEQUAL = "unequal dimensions"
    RANK = "rank"
    MAGNITUDE = "magnitude"
    EDGE = "edge values"
    NUMBER = "given numbers"
    SPECIAL = "special values"
    INTEGER = "integers"
    OPTION = "option"
    SHARED = "shared memory"
    PAIR = "two variations"
    FAR = "far apart"
    BAD_DTYPE = "bad dtype"
    BAD_RANK = "bad rank"
    BAD_DEVICE = "bad device"


def size_family(size: int) -> Family:
    """The family of a case in which a dimension has size `size`."""
    return Family.EMPTY if size == 0 else Family.SIZE


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        name: the case in words, unique in a cell: `sample 1, x transposed`.
        family: what it varies.
        arguments: all arguments, by name.
        claimed: whether the author claims that it works; the operator may reject other cases with an error.
        size: what it resizes, and the new size; None if it varies no size or several.
        argument: the argument that it varies, such as `x` or `xs[0]`; empty if it varies several.
    """

    name: str
    family: Family
    arguments: dict[str, Any] = field(compare=False, repr=False)
    claimed: bool = False
    size: tuple[str, int] | None = None
    argument: str = ""

    @property
    def group(self) -> str:
        """What it varies, in words: after a crash, others in the group are likely to crash too. Empty for a sample."""
        if self.family is Family.SAMPLE:
            return ""
        return f"{self.family.value} of {self.argument}" if self.argument else self.family.value

    def fresh(self) -> dict[str, Any]:
        """Copies of the arguments with the same layouts; tensors that share memory also share it in the copies."""
        storages: dict[int, torch.UntypedStorage] = {}
        fresh: dict[str, Any] = derive.with_tensors(self.arguments, lambda one: copied(one, storages))
        return fresh

    def plain(self, *, apart: bool = False) -> dict[str, Any]:
        """Copies of the arguments in which booleans are stored as 0 and 1, as PyTorch's own operators expect.

        Args:
            apart: whether each tensor gets its own memory.
        """
        fresh = derive.with_tensors(self.arguments, copied) if apart else self.fresh()
        plain: dict[str, Any] = derive.with_tensors(fresh, _with_plain_booleans)
        return plain

    def contiguous(self, *, apart: bool = False) -> Case:
        """The same call with each tensor in its own contiguous memory.

        Args:
            apart: whether arguments that are the same tensor become separate tensors.
        """
        made: dict[int, Tensor] = {}

        def contiguous(tensor: Tensor) -> Tensor:
            own = tensor.clone(memory_format=torch.contiguous_format)
            return own if apart else made.setdefault(id(tensor), own)

        arguments = derive.with_tensors(self.arguments, contiguous)
        return replace(self, name=f"{self.name}, in contiguous memory", arguments=arguments)


def copied(tensor: Tensor, storages: dict[int, torch.UntypedStorage] | None = None) -> Tensor:
    """Copy `tensor` with its sizes, strides and storage offset.

    Args:
        tensor: the tensor to copy.
        storages: the storages copied so far, so that tensors that share memory also share the copy.
    """
    if tensor.device.type == "meta" or is_far(tensor):
        return tensor
    storage = tensor.untyped_storage()
    known = {} if storages is None else storages
    if storage._cdata not in known:
        # Copy the whole storage, because a kernel must not write between the elements either.
        known[storage._cdata] = storage.clone()
    return Layout.of(tensor).view(known[storage._cdata])


@dataclass(frozen=True)
class Layout:
    """How a tensor views its memory.

    Attributes:
        dtype: the dtype of its elements.
        offset: its storage offset, in elements.
        shape: its sizes.
        strides: its strides, in elements.
        is_conj: whether its conjugate bit is set.
        is_neg: whether its negative bit is set.
    """

    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_conj: bool
    is_neg: bool

    @classmethod
    def of(cls, tensor: Tensor) -> Layout:
        """The layout of a tensor."""
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        return cls(tensor.dtype, int(tensor.storage_offset()), shape, strides, tensor.is_conj(), tensor.is_neg())

    def view(self, storage: torch.UntypedStorage) -> Tensor:
        """A tensor with this layout in `storage`."""
        made = torch.empty(0, dtype=self.dtype, device=storage.device)
        made.set_(storage, self.offset, self.shape, self.strides)
        made = made.conj() if self.is_conj else made
        return torch._neg_view(made) if self.is_neg else made  # noqa: SLF001  it has no public name


def _with_plain_booleans(tensor: Tensor) -> Tensor:
    if tensor.dtype == torch.bool and not tensor.is_meta and not is_far(tensor):
        # Convert the whole storage, because elements of an expanded tensor share memory.
        torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).clamp_(max=1)
    return tensor


# Beyond the range of 32 bits.
LARGE_BYTES = 2**31


def is_far(tensor: Tensor) -> bool:
    """Whether the distance between elements of `tensor` exceeds 32 bits.

    The system allocates such memory lazily, and a case touches only a few of its pages. It is never copied.
    """
    size = tensor.untyped_storage().nbytes()
    return size > max(LARGE_BYTES, 2 * tensor.nbytes)
