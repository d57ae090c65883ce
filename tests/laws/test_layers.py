"""The layers of src/opwright: which packages may import which, and which files may start a process."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "opwright"

# The packages and modules from left to right, each with those that it may import. All others are rejected.
_TO_SPEC = {"errors"}
_TO_TOOLCHAIN = _TO_SPEC | {"spec"}
_TO_BUILDER = _TO_TOOLCHAIN | {"toolchain", "report", "storage", "cache"}
_TO_LOADER = _TO_BUILDER | {"builder"}
_TO_PROGRAMS = _TO_LOADER | {"loader"}
MAY_IMPORT = {
    "errors": set[str](),
    "storage": set(),
    "cache": {"errors", "storage"},
    "spec": _TO_SPEC,
    "scaffold": _TO_TOOLCHAIN | {"storage"},
    "toolchain": _TO_TOOLCHAIN,
    "builder": _TO_BUILDER,
    "loader": _TO_LOADER,
    "probe": _TO_PROGRAMS,
    "host": _TO_PROGRAMS,
    "notebook": _TO_PROGRAMS,
    "report": {"errors"},
    "checker": _TO_PROGRAMS | {"probe"},
    "bencher": _TO_PROGRAMS,
    "bundle": _TO_PROGRAMS | {"host"},
    "scale": _TO_PROGRAMS | {"host", "bundle"},
}
PUBLIC = "__init__"  # opwright/__init__.py, which exports names from every package; only cli imports it
MAY_IMPORT["_lazy"] = set()
MAY_IMPORT[PUBLIC] = set(MAY_IMPORT)
MAY_IMPORT["cpp_extension"] = _TO_PROGRAMS | {"_lazy"}  # the other public module
MAY_IMPORT["pytest_plugin"] = _TO_PROGRAMS | {"checker"}
MAY_IMPORT["cli"] = set(MAY_IMPORT)

STARTS_PROCESSES = {
    *(Path("toolchain/run.py"), Path("toolchain/fork_server.py"), Path("toolchain/fork_client.py")),
    Path("checker/behavior/forked.py"),  # it checks calls in a forked process
}
PROCESS_MODULES = {"subprocess", "multiprocessing", "pty", "_posixsubprocess"}
PROCESS_FUNCTIONS = re.compile(
    r"(os\.(system|popen|fork|forkpty|posix_spawnp?|exec[lv]p?e?|spawn[lv]p?e?)"
    r"|asyncio\.create_subprocess_\w+|concurrent\.futures\.ProcessPoolExecutor)"
)


def imported_names(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Yields (line, dotted name) for each import in a file, including those in functions and in string constants."""
    here = [package.name, *path.relative_to(package).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = [*(here[: len(here) + 1 - level] if level else []), *([module] if module else [])]
                yield from ((node.lineno, ".".join([*base, alias.name])) for alias in names)
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name
            case _:
                pass


def used_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (line, "os.system") for each dotted name in a file, resolving `import os as o`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, dot, tail = ast.unparse(node).partition(".")
            yield node.lineno, called.get(head, head) + dot + tail


def layer_of(path: Path, package: Path) -> str:
    first = path.relative_to(package).parts[0]
    return "cli" if first == "__main__.py" else first.removesuffix(".py")


def imported_layer(name: str, package: Path) -> str | None:
    """Returns the package that a dotted name is in: `opwright.spec.Op` is in spec, `opwright.Op` in `__init__`."""
    top, _, rest = name.partition(".")
    if top != package.name:
        return None
    layer = rest.partition(".")[0]
    return layer if layer in MAY_IMPORT else PUBLIC


def layer_faults(package: Path) -> list[str]:
    faults = []
    for path in sorted(package.rglob("*.py")):
        where, layer = path.relative_to(package), layer_of(path, package)
        if layer not in MAY_IMPORT:
            faults.append(f"{where}: {layer!r} is not in the table of layers: {', '.join(MAY_IMPORT)}")
            continue
        allowed = MAY_IMPORT[layer] | {layer}
        for line, name in imported_names(path, package):
            target = imported_layer(name, package)
            if target is not None and target not in allowed:
                faults.append(f"{where}:{line}: {layer} imports {name}, which is not on its left")
    return faults


def imports_of_modules(package: Path) -> dict[str, set[str]]:
    """Returns, for each module of a package, the modules of the package that it imports.

    Every import counts: at the top, inside a function, and under TYPE_CHECKING. Imports under TYPE_CHECKING never fail,
    but a module that needs another one's types cannot be read, changed or tested without it either, and two modules
    that need each other are one module in two files. If a type is needed to the left of its class, a Protocol declares
    the required members.
    """
    modules = {}
    for path in package.rglob("*.py"):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    imported: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for _, target in imported_names(path, package):
            # The imported name may be inside a module.
            while target and target not in modules:
                target = target.rpartition(".")[0]  # noqa: PLW2901  reduced to the part that is a module
            imported[name] |= {target} - {"", name}
    return imported


def cycle_faults(package: Path) -> list[str]:
    """Returns each import cycle among the files and folders of a folder in a package; a folder counts as one module."""
    imported = imports_of_modules(package)
    faults = []
    for folder in sorted(path for path in package.rglob("*") if path.is_dir()):
        prefix = ".".join([package.name, *folder.relative_to(package).parts])
        graph: dict[str, set[str]] = {}
        for name, targets in imported.items():
            if child := child_in(prefix, name):
                children = {child_in(prefix, target) for target in targets}
                graph.setdefault(child, set()).update(children - {child, ""})
        faults += [f"{folder.relative_to(package)}: {' -> '.join(cycle)}" for cycle in cycles_in(graph)]
    return faults


def child_in(folder: str, module: str) -> str:
    """Returns the file or folder inside `folder` that contains a module; empty if the module is outside."""
    return module.removeprefix(f"{folder}.").partition(".")[0] if module.startswith(f"{folder}.") else ""


def cycles_in(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns a shortest cycle for each set of names that reach each other."""
    cycles: list[list[str]] = []
    for start in sorted(graph):
        if any(start in cycle for cycle in cycles):
            continue
        ways = [[start]]
        seen: set[str] = set()
        for way in ways:
            for target in sorted(graph.get(way[-1], ())):
                if target == start:
                    cycles.append([*way, start])
                    ways.clear()
                    break
                if target not in seen:
                    seen.add(target)
                    ways.append([*way, target])
    return cycles


def process_faults(package: Path) -> list[str]:
    faults = []
    allowed = ", ".join(sorted(map(str, STARTS_PROCESSES)))
    for path in sorted(package.rglob("*.py")):
        where = path.relative_to(package)
        if where in STARTS_PROCESSES:
            continue
        faults += [
            f"{where}:{line}: {name} starts a process; only {allowed} may"
            for line, name in sorted({*imported_names(path, package), *used_names(path)})
            if name.partition(".")[0] in PROCESS_MODULES or PROCESS_FUNCTIONS.fullmatch(name)
        ]
    return faults


def concrete_op_faults(package: Path, op_libraries: set[str]) -> list[str]:
    word = re.compile(rf"\b({'|'.join(sorted(op_libraries))})\b", re.IGNORECASE)
    return [
        f"{path.relative_to(package)}:{number}: names the operator library {found[0]!r}; those live in ops/"
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".so", ".o", ".pyc"}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (found := word.search(line))
    ]


def test_a_module_imports_only_from_its_left() -> None:
    assert layer_faults(PACKAGE) == []


def test_no_folder_has_an_import_cycle_inside() -> None:
    assert cycle_faults(PACKAGE) == []


def test_only_the_named_files_start_processes() -> None:
    assert all((PACKAGE / path).is_file() for path in STARTS_PROCESSES)
    assert process_faults(PACKAGE) == []


def test_the_package_names_no_concrete_operator() -> None:
    op_libraries = {folder.parent.name for folder in (ROOT / "ops").glob("*/op.py")}
    assert concrete_op_faults(PACKAGE, op_libraries | {"lltm", "warp_perspective"}) == []


def test_no_file_has_a_vague_name() -> None:
    vague = {"util", "utils", "helper", "helpers", "misc"}
    folders = [ROOT / name for name in ("src", "ops", "tests", "benchmarks", "examples")]
    assert [path for folder in folders for path in folder.rglob("*") if path.stem in vague] == []


@pytest.mark.parametrize(
    ("where", "source", "fault"),
    [
        ("spec/a.py", "from opwright.loader import jit", "spec imports opwright.loader.jit"),
        ("spec/a.py", "def f():\n    import opwright.cli.main", "spec/a.py:2: spec imports opwright.cli.main"),
        ("spec/a.py", "from ..builder import plan", "spec imports opwright.builder.plan"),
        ("spec/a.py", "from .. import builder", "spec imports opwright.builder"),
        ("spec/deep/a.py", "from ...toolchain.run import run", "spec imports opwright.toolchain.run.run"),
        ("spec/a.py", "from opwright import Library", "spec imports opwright.Library"),
        ("loader/a.py", "import importlib as i\ni.import_module('opwright.cli')", "loader imports opwright.cli"),
        ("errors.py", "import opwright.spec", "errors imports opwright.spec"),
        ("checker/a.py", "import opwright.bencher", "checker imports opwright.bencher"),
        ("bencher/a.py", "from opwright.checker import compare", "bencher imports opwright.checker.compare"),
        ("report/a.py", "import opwright.spec", "report imports opwright.spec"),
        ("host/a.py", "import opwright.checker", "host imports opwright.checker"),
        ("checker/a.py", "import opwright.host", "checker imports opwright.host"),
        ("__init__.py", "import opwright.cli", "__init__ imports opwright.cli"),
        ("attic/a.py", "", "'attic' is not in the table of layers"),
    ],
)
def test_the_law_of_layers_detects_a_forbidden_import(tmp_path: Path, where: str, source: str, fault: str) -> None:
    package = tree(tmp_path, where, source)
    assert [found for found in layer_faults(package) if fault in found], layer_faults(package)


@pytest.mark.parametrize(
    ("where", "source"),
    [
        ("spec/a.py", "from opwright.errors import SpecError\nfrom . import op\nimport torch"),
        ("cli/main.py", "from opwright import __version__\nimport opwright.scale"),
        ("__main__.py", "from opwright.cli import main"),
        ("host/a.py", "from opwright.loader import open"),
        ("checker/a.py", "from opwright.probe.run import run_probe"),
        ("bencher/a.py", "from opwright.report.format import duration"),
    ],
)
def test_the_law_of_layers_accepts_an_allowed_import(tmp_path: Path, where: str, source: str) -> None:
    assert layer_faults(tree(tmp_path, where, source)) == []


SUBJECT_AND_ITS_PARTS = {
    "checker/subject.py": "from opwright.checker import compare, variations\nfrom opwright.checker.code import f",
    "checker/compare.py": "if TYPE_CHECKING:\n    from opwright.checker.subject import Subject",
    "checker/code.py": "if TYPE_CHECKING:\n    from opwright.checker.subject import Subject",
    "checker/variations.py": "if TYPE_CHECKING:\n    from opwright.checker.subject import Options",
}


@pytest.mark.parametrize(
    ("sources", "cycles"),
    [
        (SUBJECT_AND_ITS_PARTS, ["checker: code -> subject -> code", "checker: compare -> subject -> compare"]),
        (
            {"spec/a.py": "import opwright.spec.b", "spec/b.py": "from .c import f", "spec/c.py": "from . import a"},
            ["spec: a -> b -> c -> a"],
        ),
        (
            {"spec/a.py": "from opwright.spec.b import f", "spec/b.py": "def f():\n    from opwright.spec import a"},
            ["spec: a -> b -> a"],
        ),
        (
            {
                "checker/deep/a.py": "from opwright.checker.other import b",
                "checker/other/b.py": "",
                "checker/other/c.py": "from opwright.checker.deep import d",
                "checker/deep/d.py": "",
            },
            ["checker: deep -> other -> deep"],
        ),
        (
            {"checker/deep/a.py": "from . import b", "checker/deep/b.py": "from opwright.checker.deep.a import f"},
            ["checker/deep: a -> b -> a"],
        ),
    ],
)
def test_the_law_of_cycles_detects_a_cycle(tmp_path: Path, sources: dict[str, str], cycles: list[str]) -> None:
    for where, source in sources.items():
        package = tree(tmp_path, where, source)
    found = cycle_faults(package)
    assert [cycle for cycle in cycles if cycle in found], found
    assert found[0] == cycles[0]


def test_the_law_of_cycles_accepts_a_diamond(tmp_path: Path) -> None:
    for where, source in {
        "spec/__init__.py": "from opwright.spec.a import f",
        "spec/a.py": "from opwright.spec import b, c",
        "spec/b.py": "from opwright.spec.d import f",
        "spec/c.py": "from opwright.spec.d import f\nfrom opwright.errors import SpecError",
        "spec/d.py": "import torch",
    }.items():
        package = tree(tmp_path, where, source)
    assert cycle_faults(package) == []


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "def f():\n    from subprocess import run",
        "import multiprocessing.pool",
        "import pty",
        "import os\nos.system('true')",
        "import os as o\no.execvp('true', [])",
        "from os import popen",
        "import asyncio\nasyncio.create_subprocess_exec('true')",
    ],
)
def test_the_law_of_processes_detects_another_file_that_starts_one(tmp_path: Path, source: str) -> None:
    (fault,) = {found.split(": ")[0] for found in process_faults(tree(tmp_path, "builder/a.py", source))}
    assert fault.startswith("builder/a.py:")
    assert process_faults(tree(tmp_path / "right", "toolchain/run.py", source)) == []


def test_the_law_of_operators_detects_a_name_in_any_file(tmp_path: Path) -> None:
    package = tree(tmp_path, "include/op.h", "// as lltm does\n// but lltmish is another word\n")
    assert concrete_op_faults(package, {"lltm"}) == [
        "include/op.h:1: names the operator library 'lltm'; those live in ops/"
    ]


def tree(folder: Path, where: str, source: str) -> Path:
    """Writes a package opwright with a single file."""
    package = folder / "opwright"
    (package / where).parent.mkdir(parents=True, exist_ok=True)
    (package / where).write_text(source, encoding="utf-8")
    return package
