"""Models that contain the operator, generated as source files that TorchScript and users can read."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.code import value_code, variable
from opwright.spec import derive
from opwright.spec.find import UncachedLoader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject
    from opwright.spec import Op

_HEAD = '''"""{name} in a model. Written by `opwright check`."""

from math import inf, nan
from typing import List, Optional

import torch
from torch import Tensor, device


'''
# Two branches, because a graph that records only one of them would fail. Each writes the call differently.
_WHOLE = '''class Whole(torch.nn.Module):
    """The operator with all of its arguments."""

    def forward({signature}):
{kept}        if {flag}:
            {by_name}
        else:
            {by_place}
        return {returned}
'''
_BESIDE = '''

def beside(value):
    """The same numbers, computed by a kernel that a compiler generates."""
    return -(-value) if isinstance(value, Tensor) and value.is_floating_point() else value


def between({names}):
    """The operator between two cheap operations."""
    {by_place}
    return {returned}
'''
_FIXED = '''class Fixed(torch.nn.Module):
    """The operator with everything but its tensors fixed."""

    def forward({signature}):
        {call}
        return {returned}
'''


def whole(subject: Subject) -> torch.nn.Module:
    """A model that accepts all arguments of the operator, and a flag that selects one of its two branches."""
    op = subject.op
    typed = typed_variables(op)
    flag = flag_name(subject)
    variables = {parameter.name: variable(parameter.name) for parameter in op.parameters}
    in_place = by_place(subject, variables)
    named = ", ".join(f"{name}={value}" for name, value in variables.items())
    # In a process without Python, PyTorch 2.13 empties a list of tensors that a model passes to an operator.
    lists = [variable(parameter.name) for parameter in op.parameters if parameter.mutated and parameter.is_list]
    kept = {name: f"{name}_kept_" for name in lists}
    source = _WHOLE.format(
        signature=", ".join(["self", *typed, f"{flag}: bool"]),
        flag=flag,
        by_name=_assigned(subject, named if subject.takes_names else in_place),
        by_place=_assigned(subject, in_place),
        kept="".join(f"        {copy} = {name}.copy()\n" for name, copy in kept.items()),
        returned=as_lists(subject)
        if returns_lists(subject)
        else _returned(subject, [kept.get(name, name) for name in map(variable, op.mutates)]),
    )
    made: torch.nn.Module = _module(subject, "whole", source).Whole()
    return made


def between(subject: Subject) -> Any:
    """A function that calls the operator between two pointwise operations, if its tensors are floating-point."""
    op = subject.op
    arguments = {
        parameter.name: f"beside({parameter.name})"
        if "Tensor" in parameter.type and not parameter.mutated
        else parameter.name
        for parameter in op.parameters
    }
    source = _BESIDE.lstrip().format(
        names=", ".join(arguments),
        by_place=_assigned(subject, by_place(subject, arguments)),
        returned=_returned(subject, op.mutates, beside="beside({})"),
    )
    return _module(subject, "between", source).between


def fixed(subject: Subject, case: Case, number: int) -> torch.nn.Module:
    """A model that accepts the tensors of `case` (see `tensor_names`), with all other arguments constant.

    Args:
        subject: the operator.
        case: the call.
        number: the number of this model among those of the operator.
    """
    arguments = {}
    for name, value in case.arguments.items():
        if isinstance(value, Tensor):
            arguments[name] = variable(name)
        elif isinstance(value, (list, tuple)) and derive.tensors(value):
            arguments[name] = f"[{', '.join(names_in(name, value))}]"
        else:
            arguments[name] = value_code(value)
    source = _FIXED.format(
        signature=", ".join(["self", *(f"{variable(name)}: Tensor" for name in tensor_names(case.arguments))]),
        call=_assigned(subject, by_place(subject, arguments)),
        returned=_returned(
            subject, [*map(variable, tensor_names({name: case.arguments[name] for name in subject.op.mutates}))]
        ),
    )
    made: torch.nn.Module = _module(subject, f"fixed_{number}", source).Fixed()
    return made


def names_in(name: str, value: Sequence[Any]) -> list[str]:
    """The names of the elements of the list `value`: `xs_0`, or None for a missing one."""
    return [f"{name}_{at}" if isinstance(one, Tensor) else "None" for at, one in enumerate(value)]


def tensor_names(arguments: Mapping[str, Any]) -> list[str]:
    """The names of the tensors of a call, in order: `x`, `xs_0`."""
    names = []
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            names.append(name)
        elif isinstance(value, (list, tuple)):
            names += [one for one in names_in(name, value) if one != "None"]
    return names


def outcome(subject: Subject, output: Any, arguments: dict[str, Any]) -> list[Any]:
    """A model's results for `arguments` in the form that `Subject.judge` expects, followed by mutated arguments."""
    count = len(subject.op.results)
    listed = list(output) if isinstance(output, tuple) else [output]
    return [*listed[:count], *(arguments[name] for name in subject.op.mutates)]


def returns_lists(subject: Subject) -> bool:
    """Whether a model in TorchScript returns one list of tensors for each result.

    PyTorch 2.13 raises an error if a tuple that it returns to Python contains an undefined tensor, and native code
    returns one for each gradient that is not required.
    """
    op = subject.op
    return len(op.results) > 1 and not op.mutates and {*op.results} <= {"Tensor", "List[Tensor]"}


def as_lists(subject: Subject) -> str:
    """The code that converts the results in `result_` to one list of tensors for each."""
    names = [f"result_[{at}]" for at in range(len(subject.op.results))]
    listed = (name if kind != "Tensor" else f"[{name}]" for name, kind in zip(names, subject.op.results, strict=True))
    return f"[{', '.join(listed)}]"


def from_lists(subject: Subject, output: Any) -> Any:
    """The results of the operator, given those of a model in TorchScript."""
    if not returns_lists(subject):
        return output
    pairs = zip(output, subject.op.results, strict=True)
    return tuple(one if kind != "Tensor" else one[0] for one, kind in pairs)


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a process without Python receives them, with enumerators as numbers."""
    enumerators = (torch.dtype, torch.layout, torch.memory_format)
    made: dict[str, Any] = pytree.tree_map_only(enumerators, _number, dict(arguments))
    return made


def flag_name(subject: Subject) -> str:
    """The name of the flag of `whole`, which differs from the names of all arguments."""
    name = "by_name"
    while any(parameter.name == name for parameter in subject.op.parameters):
        name += "_"
    return name


def annotation(type_: str) -> str:
    """A schema type as an annotation for TorchScript, with enumerators as numbers."""
    return re.sub("ScalarType|Layout|MemoryFormat", "int", type_).replace("Device", "device").replace("number", "float")


def _number(enumerator: Any) -> int:
    # TorchScript converts enumerators to their numbers.
    number: int = torch.jit.CompilationUnit("def number(value: int) -> int:\n    return value\n").number(enumerator)
    return number


def typed_variables(op: Op) -> list[str]:
    """The arguments of the operator as the annotated parameters of a model's method."""
    return [f"{variable(parameter.name)}: {annotation(parameter.type)}" for parameter in op.parameters]


def script_name(subject: Subject) -> str:
    """The operator's name in Python and TorchScript, which select the overload by the types of the arguments."""
    return f"torch.ops.{subject.library.namespace}.{subject.op.name.partition('.')[0]}"


def by_place(subject: Subject, arguments: Mapping[str, str]) -> str:
    """The arguments of a call as code, given the code of each."""
    keywords = {parameter.name for parameter in subject.op.parameters if parameter.keyword_only}
    return ", ".join(f"{name}={value}" if name in keywords else value for name, value in arguments.items())


def _assigned(subject: Subject, arguments: str) -> str:
    call = f"{script_name(subject)}({arguments})"
    return f"result_ = {call}" if subject.op.results else call


def _returned(subject: Subject, mutated: Sequence[str], beside: str = "{}") -> str:
    """The code for the results of the operator, followed by the arguments that it mutates."""
    count = len(subject.op.results)
    results = ["result_"] if count == 1 else [f"result_[{at}]" for at in range(count)]
    return ", ".join([*(beside.format(result) for result in results), *mutated]) or "None"


def _module(subject: Subject, what: str, source: str) -> ModuleType:
    # TorchScript reads the source again, so it must be in a file.
    path = subject.work / f"{subject.op.name}_{what}.py"
    path.write_text(_HEAD.format(name=subject.op.qualified_name) + source, encoding="utf-8")
    name = f"opwright_models.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=UncachedLoader(name, str(path)))
    if spec is None or spec.loader is None:  # only for the type checker: it ends in .py
        raise AssertionError
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
