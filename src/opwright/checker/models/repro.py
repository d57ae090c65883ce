"""Generates lines of Python that call an operator in a runtime, ready to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from opwright.checker.cases.code import value_code, variable
from opwright.checker.models import source
from opwright.loader.external import native_objects
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject


def instead(subject: Subject, case: Case, written: Callable[[str], str]) -> str:
    """The repro of eager mode, with the call replaced by other lines.

    Args:
        subject: the operator.
        case: the call.
        written: returns lines for the expression that calls the operator.
    """
    before, _, call = subject.code(case).rpartition("\n")
    return f"{before}\n{written(call)}"


def requiring(subject: Subject, case: Case, lines: str) -> str:
    """`lines`, whose last line is the call, preceded by lines that make the tensors require gradients."""
    before, _, call = lines.rpartition("\n")
    return f"{before}\nfor tensor in {_leaves(subject, case)}:\n    tensor.requires_grad_()\n{call}"


def trained(subject: Subject, case: Case, lines: str) -> str:
    """`lines`, whose last line is an expression for the result, with that line replaced by the gradients."""
    before, _, call = requiring(subject, case, lines).rpartition("\n")
    imported = "from opwright.probe.gradients import gradients"
    return f"{before}\n{imported}\ngradients({call}, {_leaves(subject, case)})"


def script(subject: Subject, case: Case) -> str:
    """Lines that call `case` in TorchScript."""
    op = subject.op
    names = {parameter.name: variable(parameter.name) for parameter in op.parameters}
    call = f"{source.script_name(subject)}({source.by_place(subject, names)})"
    body = (
        f"result_ = {call}\n    return {source.as_lists(subject)}"
        if source.returns_lists(subject)
        else f"return {call}"
    )
    defined = f"def forward({', '.join(['self', *source.typed_variables(op)])}):\n    {body}\n"
    run = f"model({', '.join(values(case.arguments))})"
    lines = f'class Model(torch.jit.ScriptModule):\n    pass\nmodel = Model()\nmodel.define("""\n{defined}""")\n{run}'
    return instead(subject, case, lambda _: lines)


def export(subject: Subject, case: Case, run: str = "program.module()({})") -> str:
    """Lines that export the call of `case`, and run it.

    Args:
        subject: the operator.
        case: the call.
        run: the line that runs it, with braces in place of the tensors.
    """
    names = holders(case.arguments)
    sizes = _tupled([_sizes(value) for value in case.arguments.values() if derive.tensors(value)])

    def written(call: str) -> str:
        made = f"program = torch.export.export(Model(), {_tupled(names)}, dynamic_shapes={sizes})"
        head = (
            f"class Model(torch.nn.Module):\n    def forward({', '.join(['self', *names])}):\n        return {call}\n"
        )
        return f"{head}\n{made}\n{run.format(', '.join(names))}"

    return instead(subject, case, written)


def package(subject: Subject, case: Case) -> str:
    """Lines that compile the call of `case` into a package, and run the package."""
    compiled = "torch._inductor.aoti_compile_and_package(program)"
    return export(subject, case, f"torch._inductor.aoti_load_package({compiled})({{}})")


def in_host(
    subject: Subject, lines: str, file: str, given: Sequence[str], *, linked: bool, with_gradients: bool
) -> str:
    """`lines`, whose last line runs a model, with that line replaced by a run in a process without Python.

    Args:
        subject: the operator.
        lines: the lines that create the model.
        file: an expression that saves the model and returns the path.
        given: the arguments of the model.
        linked: whether the program is linked with the libraries, or opens them.
        with_gradients: whether gradients are computed too.
    """
    with_bridge = with_gradients and not subject.is_external
    if subject.library.is_external:
        opened = [f"Path({str(path)!r})" for path in native_objects(subject.library)]
    else:
        opened = [f"opwright.open({str(subject.library.root)!r}).path", *(["build_bridge()"] if with_bridge else [])]
    listed = f"[{', '.join(opened)}]"
    program, option = (f"build_probe({listed})", "") if linked else ("build_probe()", f", libraries={listed}")
    backward = ", backward=True" if with_gradients else ""
    return "\n".join(
        [
            lines.rpartition("\n")[0],
            "from pathlib import Path",
            "from opwright.probe.build import build_probe",
            "from opwright.probe.run import run_probe",
            *(["from opwright.loader.bridge import build_bridge"] if with_bridge else []),
            f"run_probe({program}, Path({file}), [{_tupled(given)}], work=Path(){option}{backward})",
        ]
    )


def values(arguments: Mapping[str, Any]) -> list[str]:
    """Each argument as an expression; arguments that contain tensors are variables."""
    return [variable(name) if derive.tensors(value) else value_code(value) for name, value in arguments.items()]


def holders(arguments: Mapping[str, Any]) -> list[str]:
    """The variables of the arguments that contain tensors."""
    return [variable(name) for name, value in arguments.items() if derive.tensors(value)]


def _leaves(subject: Subject, case: Case) -> str:
    """A tuple of the tensors that have a gradient."""
    leaves = []
    for name in subject.op.differentiable:
        value = case.arguments[name]
        elements = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
        for at, one in elements:
            if isinstance(one, Tensor) and one.is_floating_point():
                leaves.append(variable(name) if at is None else f"{name}[{at}]")
    return _tupled(leaves)


def _sizes(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{{{', '.join(f'{at}: torch.export.Dim.AUTO' for at, size in enumerate(value.shape) if size > 1)}}}"
    return f"[{', '.join(map(_sizes, value))}]" if isinstance(value, (list, tuple)) else "None"


def _tupled(expressions: Sequence[str]) -> str:
    return f"({', '.join(expressions)}{',' if len(expressions) == 1 else ''})"
