"""Checks existing operators of packages and of PyTorch, and prints a row of a Markdown table for each.

    python benchmarks/external.py [--library NAME] [--op NAME] [--full] [--seed N] [--json FILE]

The libraries are those of benchmarks/external, each an op.py that describes existing operators:

    aten           PyTorch's own
    torchvision    pip install torchvision, built for the installed PyTorch
    torch_scatter  pip install --no-build-isolation torch-scatter
    torch_cluster  pip install --no-build-isolation torch-cluster

A library whose package is missing is skipped. `lines` counts the lines with code that describe an operator: its
reference, samples and domain, and after a plus sign the functions of op.py that these call. The check is a quick one
unless `--full` is given.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import opwright
from opwright.checker.runtime_table import RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

LIBRARIES = Path(__file__).with_name("external")
NEEDS = {"aten": "torch"}
MARKS = {"passed": "ok", "failed": "FAIL", "lacking": "lack", "not applicable": "–", "not run": "skip"}


def main() -> None:
    """Check each operator, and print its row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", metavar="NAME", action="append", help="only this library; repeat for several")
    parser.add_argument("--op", metavar="NAME", help="only this operator")
    parser.add_argument("--full", action="store_true", help="every runtime, and the whole search")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of inputs")
    parser.add_argument("--json", metavar="FILE", help="write the reports as JSON")
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    columns = [runtime.name for runtime in RUNTIMES if runtime.quick or arguments.full]
    titles = ["operator", "lines", *columns, "faults", "seconds"]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    for folder in sorted(path.parent for path in LIBRARIES.glob("*/op.py")):
        if arguments.library and folder.name not in arguments.library:
            continue
        if importlib.util.find_spec(NEEDS.get(folder.name, folder.name)) is None:
            print(f"{folder.name}: left out, because it is not installed", file=sys.stderr)
            continue
        lines = lines_of(folder / "op.py")
        for name, op in opwright.library_at(folder).ops.items():
            if arguments.op in {None, name}:
                report = opwright.check(folder, ops=[name], quick=not arguments.full, seed=arguments.seed)
                own, helpers = lines[op.reference.__name__]
                found.append({"lines": own, "helper_lines": helpers, **report.to_json()})
                print(row(op.qualified_name, found[-1], columns), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=2) + "\n")


def row(name: str, report: dict[str, Any], columns: Sequence[str]) -> str:
    """The row of an operator: its lines, its cells, the kinds of faults, and the time."""
    cells = {cell["runtime"]: MARKS[cell["status"]] for cell in report["cells"]}
    failures = [*report["failures"], *(failure for cell in report["cells"] for failure in cell["failures"])]
    kinds = ", ".join(sorted({failure["kind"] for failure in failures})) or "none"
    lines = f"{report['lines']} + {report['helper_lines']}" if report["helper_lines"] else report["lines"]
    facts = [f"`{name}`", lines, *(cells.get(runtime, "") for runtime in columns), kinds, f"{report['seconds']:.0f}"]
    return f"| {' | '.join(map(str, facts))} |"


def lines_of(path: Path) -> dict[str, tuple[int, int]]:
    """The number of lines that describe each operator, by the name of its reference, and of lines of its helpers.

    Helpers are the other functions of the file that these lines call. Lines that several operators use count for each
    of them.
    """
    text = path.read_text(encoding="utf-8")
    described: dict[str, list[ast.stmt]] = {}
    helpers: dict[str, ast.stmt] = {}
    for node in ast.parse(text).body:
        names = list(described_by(node))
        for name in names:
            described.setdefault(name, []).append(node)
        if isinstance(node, ast.FunctionDef) and not names:
            helpers[node.name] = node

    def count(nodes: Iterable[ast.stmt]) -> int:
        return sum(bool(line.strip()) for node in nodes for line in code_of(node, text))

    return {name: (count(nodes), count(called(nodes, helpers))) for name, nodes in described.items()}


def called(nodes: Iterable[ast.stmt], helpers: Mapping[str, ast.stmt]) -> list[ast.stmt]:
    """The helpers that some statements call, directly or indirectly."""
    found: dict[str, ast.stmt] = {}
    left = list(nodes)
    while left:
        used = {one.id for one in ast.walk(left.pop()) if isinstance(one, ast.Name)}
        new = {name: helpers[name] for name in used & helpers.keys() - found.keys()}
        found |= new
        left += new.values()
    return list(found.values())


def code_of(node: ast.stmt, text: str) -> list[str]:
    """The lines of a statement, with its decorators."""
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    return text.splitlines()[first - 1 : node.end_lineno]


def described_by(node: ast.stmt) -> Iterator[str]:
    """The references that a top-level statement of an op.py describes: its own, or those whose samples it defines."""
    if isinstance(node, ast.FunctionDef):
        decorators = [ast.unparse(one) for one in node.decorator_list]
        if any(one.partition("(")[0] == "library.op" for one in decorators):
            yield node.name
        yield from (one.partition(".")[0] for one in decorators if not one.startswith("library.") and "." in one)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = ast.unparse(node.value.func)
        if called.rpartition(".")[2].partition("(")[0] in {"domain", "samples", "oracle"} or "samples(" in called:
            yield called.partition(".")[0]


if __name__ == "__main__":
    main()
