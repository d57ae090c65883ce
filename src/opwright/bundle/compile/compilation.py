"""A model that is being compiled: where it comes from, where it goes, what it is compared with and who is informed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.bundle.compare.comparator import Comparator
    from opwright.bundle.source.find import Source
    from opwright.report.progress import Progress


@dataclass(frozen=True)
class Compilation:
    """What all steps of a compilation use.

    Attributes:
        source: the model.
        path: the file to write.
        precision: what is computed in inside.
        device: where it will run: `cpu` or `cuda`.
        comparator: compares the result of each transform with the goldens.
        progress: where steps are shown.
        notes: what the user should know; steps append to it.
    """

    source: Source
    path: Path
    precision: str
    device: str
    comparator: Comparator
    progress: Progress
    notes: list[str] = field(default_factory=list)
