"""One call of an operator that a check makes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


class Family(enum.Enum):
    """What a case varies, compared with the sample that it comes from."""

    SAMPLE = "sample"
    DTYPE = "dtype"
    STRIDES = "strides"
    OFFSET = "offset"
    SIZE = "size"
    EMPTY = "empty"
    TAIL = "tail"
    SPECIAL = "special values"
    FAR = "far apart"
    BAD_DTYPE = "bad dtype"
    BAD_RANK = "bad rank"
    BAD_SIZE = "bad size"
    BAD_DEVICE = "bad device"


# One or two elements do not fill a vector; among very many, the last few are not what shows.
_SIZES_WITH_A_TAIL = range(3, 4099)


def size_family(size: int) -> Family:
    """What a case varies in which a dimension has another size."""
    if size == 0:
        return Family.EMPTY
    return Family.TAIL if size in _SIZES_WITH_A_TAIL else Family.SIZE


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        name: the case in words, unique in a cell: `sample 1, x transposed`.
        family: what it varies.
        arguments: every argument by its name.
        claimed: whether the author claims that it works; other cases may be rejected with an error.
        argument: the argument that it varies, `x` or `xs[0]`; empty if it varies several.
    """

    name: str
    family: Family
    arguments: dict[str, Any] = field(compare=False, repr=False)
    claimed: bool = False
    argument: str = ""

    @property
    def group(self) -> str:
        """What it varies, in words: one crash makes others of its group likely. Empty for a sample."""
        if self.family is Family.SAMPLE:
            return ""
        return f"{self.family.value} of {self.argument}" if self.argument else self.family.value

    def fresh(self) -> dict[str, Any]:
        """Copies of the arguments, with the same layouts."""
        fresh: dict[str, Any] = pytree.tree_map_only(Tensor, copied, self.arguments)
        return fresh


def copied(tensor: Tensor) -> Tensor:
    """A copy with the same sizes, strides and storage offset."""
    if tensor.device.type == "meta" or is_far(tensor):
        return tensor
    storage = tensor.untyped_storage()
    copy = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    # The whole storage, because a kernel must not touch the memory between the elements either.
    copy.set_(storage.clone(), tensor.storage_offset(), tensor.shape, tensor.stride())
    copy = copy.conj() if tensor.is_conj() else copy
    return torch._neg_view(copy) if tensor.is_neg() else copy  # noqa: SLF001  it has no public name


# More than 32 bits can count.
LARGE_BYTES = 2**31


def is_far(tensor: Tensor) -> bool:
    """Whether the elements of `tensor` are farther apart than 32 bits can count.

    Such memory is allocated lazily: a case touches a few pages of it. It is never copied.
    """
    size = tensor.untyped_storage().nbytes()
    return size > max(LARGE_BYTES, 2 * tensor.nbytes)
