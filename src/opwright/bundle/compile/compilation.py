"""A model that is being compiled: its source, its file, its goldens, and where progress is shown."""

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
    """The data that all steps of a compilation share.

    Attributes:
        source: the model.
        path: the file to write.
        precision: the dtype that the model computes in.
        device: the device that it will run on: `cpu` or `cuda`.
        comparator: compares the result of each transform with the goldens.
        progress: where steps are shown.
        notes: remarks for the user, to which steps append.
    """

    source: Source
    path: Path
    precision: str
    device: str
    comparator: Comparator
    progress: Progress
    notes: list[str] = field(default_factory=list)
