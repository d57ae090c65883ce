"""The sizes in an operator's samples that a check can vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opwright.spec import Make

if TYPE_CHECKING:
    from opwright.spec import Op


@dataclass(frozen=True)
class SizeSlot:
    """A size in the samples that can be varied.

    Attributes:
        name: the size in words.
        default: the author's size.
        key: its kind for `Make`: `sizes` or `literals`.
        number: its number for `Make`.
    """

    name: str
    default: int
    key: str
    number: int

    def resized(self, size: int) -> dict[str, Any]:
        """The arguments of `Make` for that size."""
        return {self.key: {self.number: size}}


def size_slots(op: Op, device: str, seed: int) -> list[SizeSlot]:
    """The sizes that can be varied: those that the samples request; if there are none, their literals."""
    probe = Make(seed=seed, device=device)
    for _ in op.draw(probe):
        pass
    if probe.sizes_asked:
        return [SizeSlot(f"size {at + 1}", default, "sizes", at) for at, default in enumerate(probe.sizes_asked)]
    return [SizeSlot(f"size {literal}", literal, "literals", literal) for literal in probe.literals_seen]
