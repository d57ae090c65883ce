"""A mirror of a library: copies of its folders, in which one file at a time is changed before a build."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opwright.builder.compile import build_plan
from opwright.cache.cache import Cache
from opwright.report.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opwright.builder.plan import Plan
    from opwright.checker.mutants.mutant import Mutant
    from opwright.spec import Library

_IGNORED = shutil.ignore_patterns(".*", "__pycache__", "build", "*.so")


@dataclass(frozen=True)
class Built:
    """A library to check.

    Attributes:
        op_file: its op.py.
        shared_object: its shared object; None if it has no native sources.
        is_changed: whether it differs from the unchanged library: in its object code, or in op.py.
    """

    op_file: Path
    shared_object: Path | None
    is_changed: bool


class Mirror:
    """A mirror of a library.

    Its objects have the same paths for every mutant, so that equal ones are identical byte for byte.

    Args:
        library: the library.
        plan: how to build it; None if it has no native sources.
        folder: a new folder for the mirror.

    Attributes:
        original: the unchanged shared object; None if the library has no native sources.
    """

    def __init__(self, library: Library, plan: Plan | None, folder: Path) -> None:
        self._library = library
        self._folders = {library.root: folder / "library"}
        shutil.copytree(library.root, folder / "library", ignore=_IGNORED)
        for number, outside in enumerate(_outside(library, plan)):
            self._folders[outside] = folder / f"outside_{number}"
            shutil.copytree(outside, self._folders[outside], ignore=_IGNORED)
        self._cache = Cache(folder / "cache")
        self._plan = None if plan is None else self._mirrored(plan)
        self.original = self._build()

    def build(self, mutant: Mutant) -> Built:
        """Build the library with one change.

        Raises:
            BuildError: a source does not compile with the change.
        """
        copied = self._copy_of(mutant.file)
        copied.write_bytes(mutant.text)
        try:
            if mutant.file == self._library.root / "op.py":
                # A separate file, because the check reads it while it runs.
                op_file = copied.with_name(f"op_{mutant.line}_{mutant.edit.start}_{abs(hash(mutant.edit))}.py")
                copied.rename(op_file)
                return Built(op_file, self.original, is_changed=True)
            shared_object = self._build()
        finally:
            copied.write_bytes(mutant.content)
        return Built(self._library.root / "op.py", shared_object, is_changed=shared_object != self.original)

    def _build(self) -> Path | None:
        if self._plan is None:
            return None
        return build_plan(self._plan, cache=self._cache, progress=Progress(self._library.namespace)).path

    def _mirrored(self, plan: Plan) -> Plan:
        # The mirror of each folder and the folder itself, because a header may be outside the mirror.
        include_dirs = dict.fromkeys(path for given in plan.include_dirs for path in (self._copy_of(given), given))
        beside = dict.fromkeys(source.parent for source in plan.sources)
        return replace(
            plan,
            sources=tuple(self._copy_of(source) for source in plan.sources),
            include_dirs=(*include_dirs, *beside),
        )

    def _copy_of(self, path: Path) -> Path:
        for folder, copied in self._folders.items():
            if path == folder or folder in path.parents:
                return copied / path.relative_to(folder)
        return path


def _outside(library: Library, plan: Plan | None) -> Iterator[Path]:
    """The folders of sources outside the library's own folder, without their subfolders."""
    if plan is None:
        return
    generated = plan.definitions.source if plan.definitions else None
    folders = {source.parent for source in plan.sources if source != generated and library.root not in source.parents}
    yield from sorted(folder for folder in folders if not any(parent in folders for parent in folder.parents))
