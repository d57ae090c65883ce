"""Builds a plan into a shared object: compiles the objects that the cache lacks, and links."""

from __future__ import annotations

import functools
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder import ninja
from opwright.builder.depfile import read_depfile
from opwright.builder.frontend import may_need_frontend, without_frontend
from opwright.builder.link import link
from opwright.builder.memory import with_more_memory
from opwright.builder.precompiled import PRECOMPILED, Precompiled, is_unusable, precompiled_for
from opwright.builder.provenance import provenance
from opwright.builder.reads import Watch
from opwright.builder.recipes import Recipes, compose
from opwright.builder.shadows import are_shadowed, header_lookups, library_shadows
from opwright.cache.cache import Cache, cannot_write, digest
from opwright.cache.file_state import FileState, state_of
from opwright.errors import BuildError
from opwright.report.progress import Progress
from opwright.storage.draft import drafting, put
from opwright.storage.full_disk import full_disk

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.builder.plan import Plan

# The maximum number of attempts if files change during a build.
_MOST_ATTEMPTS = 4


@dataclass(frozen=True)
class Artefact:
    """The result of a build.

    Attributes:
        path: the shared object, or the program.
        plan: what it was built from.
        compiled: the sources that were compiled; empty if the cache had all objects.
        seconds: the duration, including the cache lookup.
        log: the output of the compilers: warnings about the author's own code.
    """

    path: Path
    plan: Plan
    compiled: tuple[Path, ...]
    seconds: float
    log: str


def build_plan(plan: Plan, *, cache: Cache | None = None, progress: Progress | None = None) -> Artefact:
    """Build `plan`, unless the cache has it.

    Several processes can call this concurrently: one builds, the others wait and use its result.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
        BuildError: a compiler or the linker rejects a source, or a file that they read changes repeatedly.
        CacheError: the cache cannot be written.
    """
    started = time.perf_counter()
    build = _Build(plan, cache or Cache(), compose(plan))
    path = build.found(build.keys()) or build.built(progress or Progress(plan.name))
    return Artefact(path, plan, tuple(build.compiled), time.perf_counter() - started, build.log)


def find_plan(plan: Plan, *, cache: Cache | None = None) -> Path | None:
    """The product of `plan`, if the cache has it.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
        BuildError: a source cannot be read.
    """
    build = _Build(plan, cache or Cache(), compose(plan))
    return build.found(build.keys())


def copy_to(artefact: Artefact, target: Path) -> Path:
    """Copy the shared object or the program to `target`, atomically.

    Raises:
        BuildError: `target` cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with drafting(target, "build") as draft:
            shutil.copy2(artefact.path, draft)
            put(draft, target)
    except OSError as error:
        msg = f"{target} cannot be written: {error.strerror}. The build itself succeeded: {artefact.path}"
        raise BuildError(msg) from error
    return target


class _Build:
    """One build of a plan, which is repeated if files change while it runs."""

    def __init__(self, plan: Plan, cache: Cache, recipes: Recipes) -> None:
        self._plan = plan
        self._cache = cache
        self._recipes = recipes
        # The states of files before a compiler reads them, where known.
        self._states: dict[str, FileState] = {}
        # The files from which the precompiled headers of a source were compiled.
        self._read_before: dict[Path, dict[str, FileState]] = {}
        self._changed = ""
        self.compiled: dict[Path, None] = {}
        self.log = ""

    def keys(self) -> list[str]:
        """The cache keys of the objects, from the current content of the sources."""
        keys = []
        for unit in self._recipes.units:
            try:
                state = state_of(unit.source, hash_all=True)
            except OSError as error:
                msg = f"the source {unit.source} cannot be read: {error.strerror}"
                raise BuildError(msg) from error
            self._states[str(unit.source)] = state
            keys.append(self._recipes.object_key(unit, str(state.content)))
        return keys

    def found(self, keys: list[str]) -> Path | None:
        """The product that the cache has for objects with these `keys`; None if anything is missing."""
        whole = [path for path in map(self._cache.find, keys) if path is not None]
        if len(whole) != len(keys):
            return None
        for linked in (whole, self._without_definitions(whole)):
            if (path := self._cache.find(self._library_key(linked))) is not None:
                return path
        return None

    def built(self, progress: Progress) -> Path:
        """The finished product."""
        attempts = 0
        with progress as shown:
            while attempts < _MOST_ATTEMPTS:
                keys = self.keys()
                with self._cache.building(digest([self._plan.name, *keys]), shown.note) as work:
                    # While this process waited, a source may have changed, or another process may have built it.
                    if self.keys() != keys:
                        continue
                    path = self.found(keys) or self._attempt(keys, work, shown)
                    if path is not None:
                        return path
                attempts += 1
        msg = (
            f"{self._changed} changed while {self._plan.name} was being built, {attempts} times in a row; nothing was "
            "cached. Build again when no other process writes to it"
        )
        raise BuildError(msg)

    def _attempt(self, keys: list[str], work: Path, shown: Progress) -> Path | None:
        """Compile and link; None if a file that was read has changed."""
        units = ninja.accepted(self._recipes.units)
        missing = [unit for unit, key in zip(units, keys, strict=True) if self._cache.find(key) is None]
        try:
            watch = Watch(work, self._states)
            self.log = self._compile(missing, work, shown) or self.log
            self.compiled.update((unit.source, None) for unit in missing)
            # Most headers were read by several compilers, all of which have exited.
            state = functools.cache(state_of)
            objects = [
                self._keep_object(key, unit, work, watch, state) if unit in missing else self._find(key, unit)
                for unit, key in zip(units, keys, strict=True)
            ]
            whole = [path for path in objects if path is not None]
            if len(whole) != len(objects):
                return None
            shown.step("link", self._plan.name)
            return self._link(whole, work)
        except BuildError as error:
            if (why := full_disk(error, [work])) is not None:
                raise cannot_write(self._cache.root, why) from error
            if not work.is_dir():
                raise cannot_write(self._cache.root, "it was removed during the build") from error
            raise

    def _compile(self, units: list[ninja.Unit], work: Path, shown: Progress) -> str:
        """Compile `units`, with their quick command line where one exists and works."""
        watch = Watch(work, {})
        quick, beside = self._quickened(units, work)
        try:
            log = ninja.compile_units(quick, work, shown, beside.beside(work) if beside else None)
        except BuildError as error:
            left = [unit for unit in quick if not (work / unit.object_name).is_file()]
            if not any(_may_be_due_to_the_quick_way(unit, error.output) for unit in left):
                raise
            log = ninja.compile_units([replace(unit, quick=None) for unit in left], work, shown)
        if beside is not None:
            beside.keep(work, self._cache, watch)
        return log

    def _quickened(self, units: list[ninja.Unit], work: Path) -> tuple[list[ninja.Unit], Precompiled | None]:
        """The units with quick command lines, and the headers to precompile in parallel for the next build."""
        beside = None
        quick = []
        for unit in units:
            own = precompiled_for(unit, self._recipes, self._plan.include_dirs)
            found = self._cache.find_with_read(own.key) if own else None
            if own and found and not are_shadowed(found[1], unit, self._plan.include_dirs, work):
                self._read_before[unit.source] = found[1]
                quick.append(own.used_by(unit, found[0]))
                continue
            if own and not found and len(units) < _processes():
                beside = own
            quick.append(replace(unit, quick=without_frontend(unit, self._plan.include_dirs)))
        return [_with_more_memory(unit) for unit in quick], beside

    def _find(self, key: str, unit: ninja.Unit) -> Path | None:
        found = self._cache.find(key)
        if found is None:  # it existed when the attempt started
            self._changed = f"a header of {unit.source.name}"
        return found

    def _keep_object(
        self, key: str, unit: ninja.Unit, work: Path, watch: Watch, state: Callable[[Path], FileState]
    ) -> Path | None:
        product = work / unit.object_name
        listed = [path for path in read_depfile(product.with_suffix(".d"), work) if not self._is_ours(path)]
        before = self._read_before.get(unit.source, {})
        lookups = header_lookups(unit, [*map(Path, before), *listed], work)
        try:
            read = {**before, **{str(path): state(path) for path in (*listed, *lookups.further)}}
        except OSError as error:
            self._changed = str(error.filename)
            return None
        if self._has_changed(read, watch):
            return None
        if (appeared := watch.appeared(lookups.unread)) is not None:
            self._changed = appeared
            return None
        read.pop(str(unit.source), None)  # part of the key
        about = provenance(unit.source.name, unit.source)
        return self._cache.keep_object(key, product, read if lookups.is_complete else None, lookups.absent, about)

    def _link(self, objects: list[Path], work: Path) -> Path | None:
        # Imported only to link: it imports a library for ELF files, which is slow.
        from opwright.builder.own_definitions import defines_operators

        output = work / self._plan.name
        authors = self._without_definitions(objects)

        def link_authors() -> Path:
            link(self._recipes, authors, output)
            return output

        if self._plan.definitions is not None and defines_operators(self._plan.definitions, authors, link_authors):
            objects = authors
        watch = Watch(work, self._states)
        read = link(self._recipes, objects, output)
        if read is not None and self._has_changed(read, watch):
            return None
        return self._cache.keep_library(
            self._library_key(objects),
            output,
            self._plan.name,
            read,
            library_shadows(self._recipes.linker, self._recipes.link_flags, read or ()),
            provenance(self._plan.name, self._plan.sources[-1].parent),
        )

    def _has_changed(self, read: dict[str, FileState], watch: Watch) -> bool:
        changed = watch.changed(read)
        if changed is None:
            return False
        self._changed = changed
        self._states.update(read)
        return True

    def _is_ours(self, path: Path) -> bool:
        # Its name is the hash of its content.
        return self._cache.holds(path)

    def _library_key(self, objects: list[Path]) -> str:
        # The linker runs in the user's working directory, to which names in flags are relative.
        has_flags = self._plan.ldflags or self._plan.commands
        return self._recipes.library_key(objects, Path.cwd() if has_flags else Path("/"))

    def _without_definitions(self, objects: list[Path]) -> list[Path]:
        """The author's own `objects`."""
        source = self._plan.definitions.source if self._plan.definitions else None
        return [path for unit, path in zip(self._recipes.units, objects, strict=True) if unit.source != source]


def _processes() -> int:
    """The number of compilers that may run at the same time."""
    processors, jobs = len(os.sched_getaffinity(0)), os.environ.get("MAX_JOBS", "")
    return min(processors, int(jobs)) if jobs.isdecimal() else processors


def _may_be_due_to_the_quick_way(unit: ninja.Unit, output: str) -> bool:
    """Whether `unit` may compile with its full command line, judging by the output of its quick one."""
    if unit.quick is None:
        return False
    is_precompiled = any(word.endswith(PRECOMPILED) for word in unit.quick)
    return is_unusable(output) if is_precompiled else may_need_frontend(output)


def _with_more_memory(unit: ninja.Unit) -> ninja.Unit:
    quick = None if unit.quick is None else with_more_memory(unit.quick)
    return replace(unit, command=with_more_memory(unit.command), quick=quick)
