"""Builds a plan into a shared object: compiles what the cache lacks, and links."""

from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder import ninja
from opwright.builder.cache import Cache, digest
from opwright.builder.own_definitions import defines_operators
from opwright.errors import BuildError
from opwright.report.progress import Progress
from opwright.toolchain import flags
from opwright.toolchain.compiler import Compiler, cuda_home, find_cxx, find_nvcc
from opwright.toolchain.packages import find_package
from opwright.toolchain.pytorch import find_pytorch
from opwright.toolchain.run import failure, run

if TYPE_CHECKING:
    from opwright.builder.plan import Plan


@dataclass(frozen=True)
class Artefact:
    """The result of a build.

    Attributes:
        path: the shared object, or the program.
        plan: what it was built from.
        compiled: the sources that were compiled; empty if the cache had all objects.
        seconds: how long it took, including the look into the cache.
        log: what the compilers printed: warnings about the author's own code.
    """

    path: Path
    plan: Plan
    compiled: tuple[Path, ...]
    seconds: float
    log: str


@dataclass(frozen=True)
class Recipes:
    """The command lines of a plan on this machine.

    Attributes:
        units: one for each source.
        link: the linker's command line, without inputs and output.
        identity: what else the result depends on: the versions of the compilers, PyTorch and packages.
    """

    units: tuple[ninja.Unit, ...]
    link: tuple[str, ...]
    identity: tuple[str, ...]


def build_plan(plan: Plan, *, cache: Cache | None = None, progress: Progress | None = None) -> Artefact:
    """Build `plan`, unless the cache has it.

    Safe to call from several processes at once: one builds, the others wait and use its result.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
        BuildError: a compiler or the linker rejects a source.
        CacheError: the cache cannot be written.
    """
    started = time.perf_counter()
    cache = cache or Cache()
    recipes = compose(plan)
    keys = [_object_key(unit, recipes) for unit in recipes.units]
    found = _finished(plan, cache, recipes, keys)
    if found is not None:
        return Artefact(found, plan, (), time.perf_counter() - started, "")
    with (
        progress or Progress(plan.name) as shown,
        cache.building(digest([plan.name, *keys]), shown.note) as work,
    ):
        # Another process may have built it while this one waited for the lock.
        found = _finished(plan, cache, recipes, keys)
        if found is not None:
            return Artefact(found, plan, (), time.perf_counter() - started, "")
        missing = [unit for unit, key in zip(recipes.units, keys, strict=True) if cache.find_object(key) is None]
        log = ninja.compile_units(missing, work, shown)
        objects = [
            _kept(cache, key, unit, work) if unit in missing else _found(cache, key, unit)
            for unit, key in zip(recipes.units, keys, strict=True)
        ]
        shown.step("link", plan.name)
        output = work / plan.name
        linked = _linked(plan, recipes, objects, output)
        path = cache.keep_library(_library_key(recipes, linked), plan.name, output)
    return Artefact(path, plan, tuple(unit.source for unit in missing), time.perf_counter() - started, log)


def copy_to(artefact: Artefact, target: Path) -> Path:
    """Copy the shared object or the program to `target`, atomically.

    Raises:
        BuildError: `target` cannot be written.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(artefact.path, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{target} cannot be written: {error.strerror}. What was built is at {artefact.path}"
        raise BuildError(msg) from error
    return target


def compose(plan: Plan) -> Recipes:
    """The command lines that build `plan` on this machine.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
    """
    torch = find_pytorch()
    packages = [find_package(name) for name in plan.packages]
    cxx = find_cxx()
    nvcc = find_nvcc() if plan.cuda else None
    toolkit = cuda_home(nvcc) if nvcc else None
    python_module = plan.product == "python_module"
    own = [f"-I{folder}" for folder in plan.include_dirs]
    forced = ["-include", str(plan.forced_include)] if plan.forced_include else []
    cxx_command = [
        *cxx.command,
        *flags.cxx_flags(plan.abi, torch, plan.name, packages=packages, python_module=python_module, cuda_home=toolkit),
        *own,
        *forced,
        *plan.cflags,
    ]
    units = []
    for source in plan.sources:
        if source.suffix == ".cu" and nvcc is not None:
            command = [
                *nvcc.command,
                f"-ccbin={cxx.host}",
                *flags.cuda_flags(plan.abi, torch, plan.name, packages=packages, python_module=python_module),
                *own,
                *forced,
                *plan.cuda_cflags,
            ]
            units.append(ninja.Unit(source, tuple(command)))
        elif source.suffix != ".cu":
            units.append(ninja.Unit(source, tuple(cxx_command)))
    link = flags.link_flags(plan.abi, torch, packages=packages, python_module=python_module, cuda_home=toolkit)
    if plan.product == "program":
        link = [f"-Wl,-rpath,{torch.lib_dir}", *(flag for flag in link if flag != "-shared")]
    versions = [f"{package.name} {package.version}" for package in packages]
    compilers: list[Compiler] = [cxx, *([nvcc] if nvcc else [])]
    identity = [*torch.identity, *versions, *(word for compiler in compilers for word in compiler.identity)]
    return Recipes(tuple(units), (*cxx.command, *link, *plan.ldflags), tuple(identity))


def _object_key(unit: ninja.Unit, recipes: Recipes) -> str:
    return digest([*recipes.identity, *unit.command, str(unit.source), unit.source.read_bytes()])


def _library_key(recipes: Recipes, objects: list[Path]) -> str:
    # An object's file name is the hash of its content.
    return digest([*recipes.identity, *recipes.link, *(path.name for path in objects)])


def _finished(plan: Plan, cache: Cache, recipes: Recipes, keys: list[str]) -> Path | None:
    objects = [cache.find_object(key) for key in keys]
    whole = [path for path in objects if path is not None]
    if len(whole) != len(objects):
        return None
    for linked in (whole, _without_definitions(plan, recipes, whole)):
        found = cache.find_library(_library_key(recipes, linked), plan.name)
        if found is not None:
            return found
    return None


def _without_definitions(plan: Plan, recipes: Recipes, objects: list[Path]) -> list[Path]:
    """The author's own `objects`."""
    source = plan.definitions.source if plan.definitions else None
    return [path for unit, path in zip(recipes.units, objects, strict=True) if unit.source != source]


def _linked(plan: Plan, recipes: Recipes, objects: list[Path], output: Path) -> list[Path]:
    """Link `objects` into `output`, and return those that were linked: without definitions that the author has too."""
    authors = _without_definitions(plan, recipes, objects)

    def link_authors() -> Path:
        _link(recipes, authors, output)
        return output

    if plan.definitions is not None and defines_operators(plan.definitions, authors, link_authors):
        objects = authors
    _link(recipes, objects, output)
    return objects


def _found(cache: Cache, key: str, unit: ninja.Unit) -> Path:
    found = cache.find_object(key)
    if found is None:  # it was there when the build began
        msg = f"a header of {unit.source.name} changed while other sources were being compiled: build again"
        raise BuildError(msg)
    return found


def _kept(cache: Cache, key: str, unit: ninja.Unit, work: Path) -> Path:
    product = work / unit.object_name
    headers = [path for path in _headers(product.with_suffix(".d")) if path != unit.source]
    started_ns = (work / ninja.FILE_NAME).stat().st_mtime_ns
    for path in (unit.source, *headers):
        # Not >=: file systems count time in ticks, and a source written just before the build has the same tick.
        if path.stat().st_mtime_ns > started_ns:
            msg = f"{path} changed while {unit.source.name} was being compiled: nothing was kept; build again"
            raise BuildError(msg)
    return cache.keep_object(key, product, headers)


def _headers(depfile: Path) -> list[Path]:
    # make's syntax: "target: a.h b.h \", with a space in a name written as "\ " and a dollar as "$$".
    text = depfile.read_text().replace("\\\n", " ").partition(":")[2]
    names = [re.sub(r"[\\$](.)", r"\1", name) for name in re.findall(r"(?:\\.|\S)+", text)]
    return sorted({Path(name).absolute() for name in names})


def _link(recipes: Recipes, objects: list[Path], output: Path) -> None:
    completed = run([*recipes.link[:1], *map(str, objects), *recipes.link[1:], "-o", output], check=False)
    if completed.exit_code != 0:
        raise failure(completed, f"{output.name} does not link")
