"""Edits an op library repeatedly in one process, and times each edit up to the first new result.

    python benchmarks/reload.py [--edits 200] [--library ops/geometry] [--json FILE]

The library is a copy of the one that `opwright new` creates. Its operator is edited in op.py and in cpu.cpp: another
constant, and in some edits another schema: an additional argument, another dtype, another name, an operator more or
fewer. After each edit, the result and its gradient are compared with the formula, through a handle that was obtained
before the first edit and through a new one. Traced functions must compute the same, or raise if they were compiled for
another schema.

Prints the median and the slowest time of an edit, the parts of it that the build and the replacement in the process
take, and the growth of the process's memory.

With `--library`, edits a comment and a constant in one source of a copy of that library instead, and only times it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

NAMESPACE = "reloaded"
# The edits in each ten: a constant, and another change. The schema changes if the last three of its parts differ.
KINDS = ("", "", "", "argument", "", "dtype", "", "name", "", "operator")
KERNEL = "return gate * sigmoid(gate) * value; }, gate, value);"
REFERENCE = "return (silu(gate) * value).contiguous()"
EXTRA_OP = """

@library.op
def opposite(gate: Tensor) -> Tensor:
    \"\"\"-gate.\"\"\"
    return -gate
"""


@dataclass(frozen=True)
class Edit:
    """One state of the sources.

    `name(gate, value)` is `constant * silu(gate) * value`, plus `bias` if it has that argument.
    """

    constant: int
    kind: str

    @property
    def name(self) -> str:
        """The operator's name."""
        return "gated" if self.kind == "name" else "swiglu"

    def write(self, folder: Path, op_py: str, cpu_cpp: str) -> None:
        """Write the sources, edited from those of the template."""
        bias = ", bias: float = 0.0" if self.kind == "argument" else ""
        term = " + bias" if bias else ""
        op_py = replaced(op_py, REFERENCE, f"return ({self.constant} * silu(gate) * value{term}).contiguous()")
        op_py = replaced(
            op_py, "def swiglu(gate: Tensor, value: Tensor)", f"def swiglu(gate: Tensor, value: Tensor{bias})"
        )
        cpu_cpp = replaced(cpu_cpp, "return gate * sigmoid(gate) * value; }", self._formula())
        if bias:
            cpu_cpp = replaced(
                cpu_cpp,
                "Tensor swiglu(const Tensor& gate, const Tensor& value)",
                "Tensor swiglu(const Tensor& gate, const Tensor& value, double bias)",
            )
            cpu_cpp = replaced(
                cpu_cpp,
                "[](auto gate, auto value) OPWRIGHT_INLINE",
                "[b = static_cast<float>(bias)](auto gate, auto value) OPWRIGHT_INLINE",
            )
            cpu_cpp = replaced(
                cpu_cpp,
                "const Tensor& value,\n                                           const std::vector<bool>& wanted)",
                "const Tensor& value,\n double, const std::vector<bool>& wanted)",
            )
        cpu_cpp = replaced(
            cpu_cpp, "return std::tuple(grad * value", f"return std::tuple({self.constant} * grad * value"
        )
        cpu_cpp = replaced(cpu_cpp, "grad * (gate * s));", f"{self.constant} * grad * (gate * s));")
        if self.kind == "dtype":
            cpu_cpp = cpu_cpp.replace("<float, double>", "<float>").replace(
                "{ScalarType::Float, ScalarType::Double}", "{ScalarType::Float}"
            )
        if self.kind == "name":
            op_py = op_py.replace("swiglu", "gated")
            cpu_cpp = cpu_cpp.replace("swiglu", "gated")
        if self.kind == "operator":
            op_py += EXTRA_OP
        (folder / "op.py").write_text(op_py)
        (folder / "cpu.cpp").write_text(cpu_cpp)

    def _formula(self) -> str:
        return f"return {self.constant} * gate * sigmoid(gate) * value{' + b' if self.kind == 'argument' else ''}; }}"


def replaced(text: str, old: str, new: str) -> str:
    """Replace `old` with `new` in `text`, which must contain it."""
    if old not in text:
        msg = f"the template has no {old!r}"
        raise AssertionError(msg)
    return text.replace(old, new)


@dataclass
class Times:
    """The durations of each edit in seconds."""

    whole: list[float] = field(default_factory=list)
    build: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Medians, and the slowest."""
        rest = [whole - build for whole, build in zip(self.whole, self.build, strict=True)]
        return {
            "edits": len(self.whole),
            "median_s": statistics.median(self.whole),
            "slowest_s": max(self.whole),
            "build_median_s": statistics.median(self.build),
            "replacement_median_s": statistics.median(rest),
        }


def memory_kib() -> int:
    """The resident memory of this process in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def timed_reload(loaded: Any, first_result: Callable[[], object], times: Times) -> None:
    """Reload, and call the operator for the first time."""
    started = time.perf_counter()
    opwright.build(loaded.library.root)
    built = time.perf_counter()
    loaded.reload()
    first_result()
    times.whole.append(time.perf_counter() - started)
    times.build.append(built - started)


class Scaffold:
    """A copy of the library that `opwright new` creates, and objects made from its operators at earlier times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / NAMESPACE
        subprocess.run([sys.executable, "-m", "opwright", "new", str(self.folder)], check=True, capture_output=True)
        self._op_py, self._cpu_cpp = (self.folder / "op.py").read_text(), (self.folder / "cpu.cpp").read_text()
        Edit(1, "").write(self.folder, self._op_py, self._cpu_cpp)
        self.loaded = opwright.open(self.folder)
        self.handles = {"swiglu": torch.ops.reloaded.swiglu}
        self.scripts: list[tuple[str, Any]] = []
        self.counts = {"results": 0, "gradients": 0, "scripted_right": 0, "scripted_refused": 0, "removed_refused": 0}
        self.x = torch.randn(32, 33, generator=torch.Generator().manual_seed(0))

    def run(self, edit: Edit, times: Times) -> None:
        """Make one edit, time it, and check all objects of earlier ones."""
        edit.write(self.folder, self._op_py, self._cpu_cpp)
        timed_reload(self.loaded, lambda: getattr(torch.ops.reloaded, edit.name)(self.x, self.x), times)
        fresh = getattr(torch.ops.reloaded, edit.name)
        handle = self.handles.setdefault(edit.name, fresh)
        for call in (fresh, handle, handle.default):
            self._check_call(edit, call)
        self._check_others(edit)
        self._check_scripts(edit)

    def _check_call(self, edit: Edit, call: Any) -> None:
        more = {"bias": 0.5} if edit.kind == "argument" else {}
        gate = self.x.clone().requires_grad_()
        expected_gate = self.x.clone().requires_grad_()
        expected = edit.constant * torch.nn.functional.silu(expected_gate) * self.x + more.get("bias", 0.0)
        result = call(gate, self.x, **more)
        torch.testing.assert_close(result, expected)
        self.counts["results"] += 1
        (grad,) = torch.autograd.grad(result, gate, torch.ones_like(result))
        (expected_grad,) = torch.autograd.grad(expected, expected_gate, torch.ones_like(expected))
        torch.testing.assert_close(grad, expected_grad)
        self.counts["gradients"] += 1

    def _check_others(self, edit: Edit) -> None:
        if edit.kind == "operator":
            self.handles["opposite"] = torch.ops.reloaded.opposite
            torch.testing.assert_close(torch.ops.reloaded.opposite(self.x), -self.x)
        there = {edit.name, *(["opposite"] if edit.kind == "operator" else [])}
        for name, handle in self.handles.items():
            if name not in there:
                must_raise(lambda handle=handle: handle(self.x, self.x), opwright.LoadError)  # type: ignore[misc]
                self.counts["removed_refused"] += 1
        if edit.kind == "dtype":
            wide = self.x.double()
            must_raise(lambda: getattr(torch.ops.reloaded, edit.name)(wide, wide), RuntimeError)

    def _check_scripts(self, edit: Edit) -> None:
        call = torch.jit.trace(lambda x: getattr(torch.ops.reloaded, edit.name)(x, x), (self.x,))
        self.scripts = [*self.scripts[-4:], (self._schema(edit), call)]
        for schema, script in self.scripts:
            try:
                result = script(self.x)
            except opwright.LoadError:
                self.counts["scripted_refused"] += 1
                continue
            if schema != self._schema(edit):
                msg = "a scripted function with another schema was not rejected"
                raise AssertionError(msg)
            torch.testing.assert_close(result, edit.constant * torch.nn.functional.silu(self.x) * self.x)
            self.counts["scripted_right"] += 1

    def _schema(self, edit: Edit) -> str:
        return str(torch._C._get_schema(f"{NAMESPACE}::{edit.name}", ""))


def must_raise(call: Callable[[], object], error: type[Exception]) -> None:
    """Check that a call raises."""
    try:
        call()
    except error:
        return
    msg = f"expected {error.__name__}"
    raise AssertionError(msg)


def edit_scaffold(folder: Path, edits: int) -> dict[str, Any]:
    """Run the edits of the new library."""
    scaffold = Scaffold(folder)
    times = Times()
    memory = [memory_kib()]
    for at in range(1, edits + 1):
        scaffold.run(Edit(2 + at, KINDS[at % len(KINDS)]), times)
        memory.append(memory_kib())
        if at % 10 == 0:
            print(f"{at} edits: median {statistics.median(times.whole):.2f} s, {memory[-1] / 1024:.0f} MiB", flush=True)
    settled = min(20, edits // 2)  # one-time allocations of PyTorch are not growth
    growth = (memory[-1] - memory[settled]) / max(1, edits - settled)
    return {**times.summary(), "growth_kib_per_edit": growth, "memory_mib": memory[-1] / 1024, **scaffold.counts}


def edit_library(folder: Path, library: Path, source: str, edits: int) -> dict[str, Any]:
    """Append a constant to one source of a copy of a library, repeatedly."""
    copy = folder / library.name
    shutil.copytree(library, copy)
    loaded = opwright.open(copy)
    times = Times()
    text = (copy / source).read_text()
    for at in range(edits):
        (copy / source).write_text(f"{text}\nextern const int reload_edit;\nconst int reload_edit = {at};\n")
        timed_reload(loaded, lambda: None, times)
        print(f"edit {at + 1}: {times.whole[-1]:.2f} s", flush=True)
    return times.summary()


def main() -> None:
    """Edit, check, time and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--library", type=Path, help="edit a copy of this library instead")
    parser.add_argument("--source", default="cpu.cpp", help="the source of --library to edit")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.library is None:
            found = edit_scaffold(Path(folder), arguments.edits)
        else:
            found = edit_library(Path(folder), arguments.library, arguments.source, arguments.edits)
    for name, value in found.items():
        print(f"{name:24} {value:.3f}" if isinstance(value, float) else f"{name:24} {value}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
