"""Which GPUs compiled code supports, by their compute capabilities."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Capability = tuple[int, int]

_GENERATED = frozenset({"-gencode", "--generate-code"})
_ARCHITECTURE = frozenset({"-arch", "--gpu-architecture"})
_CODE = frozenset({"-code", "--gpu-code"})
_NAMED = re.compile(r"(sm|compute)_(\d+)(\d)([a-z]?)")


@dataclass(frozen=True)
class Served:
    """The GPUs that compiled code supports.

    Attributes:
        compiled: the capabilities that it is compiled for. Code for one also runs on newer GPUs of its generation.
        ptx: the lowest capability with PTX, which the driver compiles for all newer GPUs; None if there is no PTX.
    """

    compiled: frozenset[Capability]
    ptx: Capability | None = None

    def serves(self, gpu: Capability) -> bool:
        """Whether the code runs on a GPU of this capability."""
        return self.has_ptx_for(gpu) or any(gpu[0] == one[0] and gpu >= one for one in self.compiled)

    def has_ptx_for(self, gpu: Capability) -> bool:
        """Whether the code includes PTX for a GPU of this capability, and therefore for all newer ones."""
        return self.ptx is not None and gpu >= self.ptx


def served_by(command: Sequence[str], own: Capability) -> Served | None:
    """The GPUs supported by code that nvcc compiles with these arguments; None if the arguments name none.

    Args:
        command: the command line.
        own: the capability of this machine's GPU, which `native` selects.
    """
    codes = [*_codes(command, own)]
    # Code for a single GPU (9.0a) does not run on newer ones, not even as PTX.
    compiled = frozenset(gpu for kind, gpu, suffix in codes if kind == "sm" or suffix)
    ptx = min((gpu for kind, gpu, suffix in codes if kind == "compute" and not suffix), default=None)
    return Served(compiled, ptx) if codes else None


def in_common(found: Iterable[Served]) -> tuple[str, ...]:
    """The GPUs that all of `found` support, as the manifest lists them; empty if there is no code for GPUs."""
    every = [*found]
    starts = sorted({start for one in every for start in (*one.compiled, *([one.ptx] if one.ptx else []))})
    listed: list[str] = []
    generations: set[int] = set()
    for start in starts:
        if start[0] in generations or not all(one.serves(start) for one in every):
            continue
        if all(one.has_ptx_for(start) for one in every):
            return (*listed, f"{written(start)}+PTX")
        generations.add(start[0])
        listed.append(written(start))
    return tuple(listed)


def written(gpu: Capability) -> str:
    """A capability in the form of the manifest, such as `9.0`."""
    return f"{gpu[0]}.{gpu[1]}"


def _codes(command: Sequence[str], own: Capability) -> Iterator[tuple[str, Capability, str]]:
    """The generated code: `sm` or `compute`, the capability, and the suffix of code for a single GPU."""
    values = [*_values(command)]
    has_code = any(option in _CODE for option, _ in values)
    for option, value in values:
        if option in _ARCHITECTURE and value == "native":
            yield "sm", own, ""
        if option in _ARCHITECTURE and has_code:
            continue
        for kind, major, minor, suffix in _NAMED.findall(value.rpartition("code=")[2]):
            gpu = int(major), int(minor)
            yield kind, gpu, suffix
            if option in _ARCHITECTURE and kind == "sm":  # nvcc adds the PTX
                yield "compute", gpu, suffix


def _values(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options about GPUs, each with its value, which is the next word if the option has no `=`."""
    for at, word in enumerate(command):
        option, sign, value = word.partition("=")
        if option in _GENERATED | _ARCHITECTURE | _CODE:
            yield option, value if sign else "".join(command[at + 1 : at + 2])
