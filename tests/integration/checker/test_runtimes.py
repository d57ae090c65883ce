"""The runtimes of a check: correct operators of every kind pass in each, and each reports its own faults."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed

import opwright
from opwright.checker.cases.code import inputs_of
from opwright.checker.job import Options
from opwright.checker.kinds import Kind
from opwright.checker.models import probe_process
from opwright.checker.processes.reproduction import saved
from opwright.checker.recorder import Recorder
from opwright.checker.runtimes import compile as compile_runtime
from opwright.checker.subject import Subject
from opwright.probe.run import ProbeRun, run_probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opwright.checker.runtimes.runtime import Runtime
    from opwright.checker.steps import Steps
    from opwright.checker.verdict import Cell, Failure
    from opwright.loader.open import Loaded

PACKAGES = Path(__file__).parents[2] / "packages"
IN_PYTHON = ("compile", "vmap", "trace", "script", "export")
COMPILED_AHEAD = ("aoti", "host-linked", "host-script", "host-aoti")
OPERATORS = ("product", "product_backward", "joined", "halves", "signs", "add_", "double_all_")
# The operators and runtimes that do not apply, and why.
REASONS = {
    **{(name, "vmap"): "not claimed" for name in OPERATORS if name != "product"},
    ("double_all_", "trace"): "torch.jit.trace drops calls that only mutate tensors in lists",
    ("product_backward", "trace"): r"torch.jit.trace cannot record an argument bool\[\] wanted",
}


@pytest.fixture(scope="module")
def right() -> Loaded:
    return opwright.open(PACKAGES / "every_runtime")


@pytest.fixture(scope="module")
def wrong() -> Loaded:
    return opwright.open(PACKAGES / "fails_in_a_runtime")


class Checked:
    """The outcome of one cell, and its steps."""

    def __init__(self, loaded: Loaded, op: str, runtime: str, work: Path, *, quick: bool = False) -> None:
        self.events: list[dict[str, Any]] = []
        subject = self.subject = Subject(loaded.library.ops[op], loaded.path, "cpu", Options(quick=quick), work)
        recorder = Recorder(subject.op.qualified_name, runtime, "cpu", self.events.append)
        module = cast("Runtime", importlib.import_module(f"opwright.checker.runtimes.{runtime.replace('-', '_')}"))
        assert runtime == module.NAME
        self.why_not = module.why_not(subject)
        if not self.why_not:
            module.run(subject, recorder)
        self.cell: Cell = recorder.cell()

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The events of its steps."""
        return [event for event in self.events if event["event"] == "step"]

    @property
    def failure(self) -> Failure:
        """The only failure."""
        (failure,) = self.cell.failures
        return failure


@pytest.mark.sample(2)
@pytest.mark.parametrize("runtime", IN_PYTHON)
@pytest.mark.parametrize("op", OPERATORS)
def test_operators_of_every_kind_pass_in_python(right: Loaded, op: str, runtime: str, tmp_path: Path) -> None:
    checked = Checked(right, op, runtime, tmp_path)
    _passes_or_does_not_apply(checked, op, runtime)


@pytest.mark.sample(1)
@pytest.mark.parametrize("runtime", COMPILED_AHEAD)
@pytest.mark.parametrize("op", OPERATORS)
def test_operators_of_every_kind_pass_ahead_of_time_and_without_python(
    right: Loaded, op: str, runtime: str, tmp_path: Path
) -> None:
    _passes_or_does_not_apply(Checked(right, op, runtime, tmp_path), op, runtime)


@pytest.mark.sample(of="long")
def test_results_whose_size_depends_on_values_pass_in_every_runtime(tmp_path: Path) -> None:
    loaded = opwright.open(PACKAGES / "above")
    for runtime in ("eager", "autograd", *IN_PYTHON, *COMPILED_AHEAD):
        checked = Checked(loaded, "above", runtime, tmp_path)
        assert checked.why_not == ("" if runtime != "vmap" else "not claimed; @library.op(vmap=True) claims it")
        assert checked.cell.failures == ()
        assert (checked.cell.cases > 0) == (runtime != "vmap")


# The first returns an undefined gradient, the second a list and a tensor.
@pytest.mark.sample(of="runtimes")
@pytest.mark.parametrize("op", ["rows_backward", "weighted_sum_backward"])
def test_a_backward_with_several_results_passes_in_torchscript(op: str, tmp_path: Path) -> None:
    loaded = opwright.open(PACKAGES / "gradients")
    in_python, in_host = (Checked(loaded, op, runtime, tmp_path) for runtime in ("script", "host-script"))
    for checked in (in_python, in_host):
        assert checked.cell.failures == ()
        assert checked.cell.cases > 0
    # The operator may reject variations, and so may the repro.
    calls = {step["repro"] for step in in_python.steps if re.search(r"sample \d+, arguments by name", step["step"])}
    assert calls
    for call in calls:
        exec(ready(in_python, call, tmp_path), {"__name__": "__main__"})


@pytest.mark.parametrize("runtime", ["aoti", "host-aoti"])
def test_undefined_results_that_aotinductor_does_not_support_are_reported(runtime: str, tmp_path: Path) -> None:
    checked = Checked(opwright.open(PACKAGES / "gradients"), "rows_backward", runtime, tmp_path)
    assert "AOTInductor does not support infinite or NaN constants or undefined results" in checked.why_not


def _passes_or_does_not_apply(checked: Checked, op: str, runtime: str) -> None:
    assert re.match(REASONS.get((op, runtime), "$"), checked.why_not)
    assert checked.cell.failures == ()
    assert (checked.cell.cases > 0) == (checked.why_not == "")
    names = [step["step"] for step in checked.steps]
    assert len(names) == len(set(names))


@pytest.mark.sample(of="runtimes")
def test_trained_models_are_also_judged_by_their_gradients(right: Loaded, tmp_path: Path) -> None:
    for runtime, step in (("compile", "sample 1, compiled, the backward"), ("script", "sample 2 in float64, trained")):
        checked = Checked(right, "product", runtime, tmp_path)
        assert step in [made["step"] for made in checked.steps]


@pytest.mark.sample(of="runtimes")
def test_one_package_serves_python_and_the_process_without_python(right: Loaded, tmp_path: Path) -> None:
    first = Checked(right, "halves", "aoti", tmp_path)
    second = Checked(right, "halves", "host-aoti", tmp_path)
    compiled = "sample 1, compiled by AOTInductor"
    assert compiled in [step["step"] for step in first.steps]
    assert compiled not in [step["step"] for step in second.steps]
    assert second.cell.cases == first.cell.cases > 1


def test_a_quick_check_compiles_nothing(right: Loaded, tmp_path: Path) -> None:
    checked = Checked(right, "product", "compile", tmp_path, quick=True)
    assert checked.cell.status == "passed"
    assert checked.cell.reason == "the graph was run without fused kernels: --quick"
    assert not [step for step in checked.steps if "compiled" in step["step"]]


@pytest.mark.parametrize("runtime", IN_PYTHON)
def test_the_repro_of_each_step_runs_unchanged(right: Loaded, runtime: str, tmp_path: Path) -> None:
    checked = Checked(right, "product", runtime, tmp_path, quick=True)
    # The operator may reject variations, torch.vmap may reject an empty batch, and so may the repro.
    calls = {
        step["repro"]
        for step in checked.steps
        if re.search(r"inputs of sample \d+'", step["repro"]) and "an empty batch" not in step["step"]
    }
    assert len(calls) > 1
    for call in calls:
        exec(ready(checked, call, tmp_path), {"__name__": "__main__"})


def ready(checked: Checked, lines: str, folder: Path) -> str:
    """The repro of a step with the files that it loads."""
    subject = checked.subject
    for case in (*subject.samples, *subject.varied, *subject.pairs()):
        if repr(inputs_of(case)) in lines:
            lines = lines.replace(repr(inputs_of(case)), repr(str(saved(case, folder))))
    return lines


@pytest.mark.sample(of="runtimes")
def test_the_repro_of_a_process_without_python_runs_unchanged(
    right: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls: dict[str, Any] = {}
    for op in ("product", "signs"):
        for runtime in ("host-linked", "host-script"):
            checked = Checked(right, op, runtime, tmp_path)
            (step,) = [step for step in checked.steps if step["step"] == "all calls in a process without Python"]
            calls[ready(checked, step["repro"], tmp_path)] = op
    assert len(calls) == 4
    for call in calls:
        head, _, last = call.rpartition("\n")
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(head, names)
        done = eval(last, names)
        assert done.error == ""
        assert [response.error for response in done.responses] == [""]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("op", "runtime", "kind", "case", "got", "expected"),
    [
        ("longer_when_fake", "compile", Kind.FAKE_SHAPE, "sample 1, real and fake", r"float32 \(5, 6\)", r"\(4, 6\)"),
        ("itself_when_fake", "compile", Kind.ALIAS, "sample 1, real and fake", "memory with an argument", "new memory"),
        ("looks_at_numbers", "compile", Kind.FAKE_RAISES, "sample 1, real and fake", "DataDependent", "no error"),
        ("looks_at_numbers", "export", Kind.FAKE_RAISES, "sample 1, exported", "DataDependent", "no error"),
        (
            "difference",
            "vmap",
            Kind.WRONG_RESULT,
            "sample 1, batches in front: call 0 of 3",
            "24 of 24",
            r"at \[0, 0\]",
        ),
        ("first_again", "trace", Kind.WRONG_RESULT, "sample 1 with other numbers, run from the graph", "24 of 24", ""),
        ("declines", "script", Kind.RAISES, "sample 2, arguments by name", "must be 'twice', got 'thrice'", "no error"),
        ("aborts_alone", "host-linked", Kind.CRASH, "sample 1, arguments by name", "request 0 by SIGABRT", "a result"),
        (
            "raises_alone",
            "host-script",
            Kind.RUNTIME,
            "sample 1, arguments by name",
            "x must be in a process",
            "a result",
        ),
        (
            "zeros_alone",
            "host-script",
            Kind.WRONG_GRADIENT,
            "sample 1, with gradients",
            "of x: .*: 0.0; 24 of 24",
            "1.0",
        ),
        (
            "raises_alone",
            "host-aoti",
            Kind.RUNTIME,
            "sample 1, run from the package",
            "x must be in a process",
            "a result",
        ),
    ],
)
def test_a_fault_in_a_runtime_is_named(
    wrong: Loaded, tmp_path: Path, op: str, runtime: str, kind: Kind, case: str, got: str, expected: str
) -> None:
    failure = Checked(wrong, op, runtime, tmp_path).failure
    assert (failure.kind, failure.case) == (kind, case)
    assert re.search(got, failure.got)
    assert re.search(expected, failure.expected)
    assert failure.repro.startswith("import opwright, torch\nopwright.open(")


@pytest.mark.sample(of="runtimes")
def test_limits_of_pytorch_are_reported_with_a_workaround(wrong: Loaded, tmp_path: Path) -> None:
    failure = Checked(wrong, "rounded", "aoti", tmp_path).failure
    assert (failure.kind, failure.case) == (Kind.RUNTIME, "the package loaded")
    assert "serialized argument type as_scalar_type for argument 1 but got as_int" in failure.got
    assert failure.detail.endswith("rejects it: remove the default, or make it None")


def test_sizes_that_an_exported_program_specializes_are_noted_and_not_a_fault(wrong: Loaded, tmp_path: Path) -> None:
    cell = Checked(wrong, "of_one_size", "export", tmp_path).cell
    assert cell.status == "passed"
    assert cell.reason == "the exported program accepts no other sizes: Guard failed: x.size()[0] == 4"


@pytest.mark.parametrize("runtime", ["host-linked", "host-script", "host-aoti"])
def test_an_operator_without_a_native_kernel_reports_what_it_requires_without_python(
    wrong: Loaded, runtime: str, tmp_path: Path
) -> None:
    checked = Checked(wrong, "rounded", runtime, tmp_path)
    assert checked.steps == []
    assert checked.why_not == (
        "no native kernel: fails_in_a_runtime::rounded exists only in Python; "
        "implement rounded in OPWRIGHT_IMPL(fails_in_a_runtime, CPU, m)"
    )


def test_a_library_without_sources_reports_what_it_requires_without_python(tmp_path: Path) -> None:
    loaded = opwright.open(_python_only(tmp_path, "without_sources"))
    assert Checked(loaded, "doubled", "host-script", tmp_path).why_not == (
        "no native kernel: without_sources::doubled exists only in Python; "
        "name sources=[...] in op.py and implement doubled there"
    )


@pytest.mark.sample(of="runtimes")
def test_an_operator_that_compiles_only_with_constant_numbers_passes_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text("""
import torch
import opwright

library = opwright.Library("powers")

@library.op
def slope(x: torch.Tensor, n: int) -> torch.Tensor:
    return n * x.pow(n - 1)

@slope.samples
def _(make):
    yield make.randn(6), 3
    yield make.randn(6), 4
""")
    checked = Checked(opwright.open(tmp_path), "slope", "compile", tmp_path)
    assert checked.cell.status == "passed", checked.cell.failures
    assert "PyTorch cannot compile it with symbolic numbers: " in checked.cell.reason


def test_an_operator_that_does_not_compile_fails_with_the_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(_: object, *, dynamic: bool | None = True, **__: object) -> Callable[..., None]:
        def fail() -> None:
            cause = RuntimeError(f"no code for dynamic={dynamic}")
            raise BackendCompilerFailed(fail, cause, None)

        return fail

    monkeypatch.setattr(compile_runtime, "_compiled", compiled)
    function = compile_runtime._with_numbers_as_needed(cast("Steps", SimpleNamespace(subject=None)))
    with pytest.raises(BackendCompilerFailed, match="no code for dynamic=True"):
        function()


def test_a_gradient_that_requires_python_is_noted(wrong: Loaded, tmp_path: Path) -> None:
    cell = Checked(wrong, "first_again", "host-script", tmp_path).cell
    assert cell.reason == "no gradient without Python: declare a native backward, and implement it"


def test_a_process_without_python_that_takes_too_long_is_reported(
    right: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_process, "_LONGEST_S", 0.001)
    failure = Checked(right, "product", "host-script", tmp_path).failure
    assert (failure.kind, failure.case) == (Kind.HANG, "the process without Python")
    assert failure.got == "the probe was killed before the requests: it exceeded its time limit of 0.001 s"


def test_python_in_a_process_without_python_is_reported(
    right: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_python(*args: Any, **kwargs: Any) -> ProbeRun:
        return dataclasses.replace(run_probe(*args, **kwargs), python_mapped=True)

    monkeypatch.setattr(probe_process, "run_probe", with_python)
    failure = Checked(right, "product", "host-script", tmp_path).failure
    assert (failure.kind, failure.got) == (Kind.RUNTIME, "Python is loaded in the process")
    assert failure.expected == "a process without Python: link nothing that requires it"


@pytest.fixture
def decomposed(tmp_path: Path) -> Iterator[Loaded]:
    """Yields a library whose operator PyTorch decomposes."""
    loaded = opwright.open(_python_only(tmp_path, f"decomposed_{tmp_path.name}".replace("-", "_")))
    pieces = torch.library.Library(loaded.library.namespace, "IMPL")
    pieces.impl("doubled", lambda x: x + x, "CompositeImplicitAutograd")
    yield loaded
    pieces._destroy()


@pytest.mark.parametrize(("runtime", "case"), [("compile", "as a graph"), ("export", "decomposed")])
def test_a_graph_without_the_operator_is_reported(decomposed: Loaded, runtime: str, case: str, tmp_path: Path) -> None:
    failure = Checked(decomposed, "doubled", runtime, tmp_path).failure
    assert (failure.kind, failure.case) == (Kind.NOT_IN_GRAPH, f"sample 1, {case}")
    assert "aten.add" in failure.got
    assert failure.expected == f"a graph that calls {decomposed.library.namespace}::doubled"


def test_a_step_that_ended_a_process_is_not_repeated(right: Loaded, tmp_path: Path) -> None:
    op = right.library.ops["product"]
    steps: list[dict[str, Any]] = []
    skip = frozenset({"sample 1, recorded"})
    recorder = Recorder(op.qualified_name, "trace", "cpu", steps.append, skip)
    module = importlib.import_module("opwright.checker.runtimes.trace")
    run: Callable[[Subject, Recorder], None] = module.run
    run(Subject(op, right.path, "cpu", Options(quick=True), tmp_path), recorder)
    assert recorder.cell().failures == ()
    assert {step["step"].partition(",")[0] for step in steps} == {"sample 2", "sample 2 with other numbers"}


def _python_only(folder: Path, namespace: str) -> Path:
    """Writes a library without native sources."""
    path = folder / "op.py"
    path.write_text(
        "from torch import Tensor\n"
        "import opwright\n"
        f"library = opwright.Library({namespace!r})\n"
        "@library.op\n"
        "def doubled(x: Tensor) -> Tensor:\n"
        '    """Twice x."""\n'
        "    return x * 2\n"
        "@doubled.samples\n"
        "def _(make):\n"
        "    yield make.randn(4, 6)\n"
    )
    return path
