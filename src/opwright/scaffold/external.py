"""Writes the op.py of a new library that describes existing operators."""

from __future__ import annotations

import keyword
import re
import textwrap
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from opwright.scaffold.flavour import render

_WIDTH = 118
# By type in a schema: the Python annotation, and an argument for a sample.
_TYPES = {
    "Tensor": ("Tensor", "make.randn(4, 5)"),
    "int": ("int", "1"),
    "float": ("float", "1.0"),
    "number": ("float", "1.0"),
    "bool": ("bool", "False"),
    "str": ("str", '""'),
    "complex": ("complex", "1.0"),
    "ScalarType": ("torch.dtype", "torch.float32"),
    "Device": ("torch.device", 'torch.device("cpu")'),
}


@dataclass(frozen=True)
class Registered:
    """A registered operator.

    Attributes:
        name: its name without the namespace; with an overload, `sum.dim_IntList`.
        schema: PyTorch's own `FunctionSchema`.
        has_gradient: whether a gradient is registered.
    """

    name: str
    schema: Any
    has_gradient: bool


def why_not(schema: Any) -> str:
    """Why a reference in Python cannot describe an operator with this schema; empty if it can."""
    for argument in schema.arguments:
        if argument.kwarg_only and keyword.iskeyword(argument.name) and not argument.has_default_value():
            return f"its keyword-only argument {argument.name!r} has the name of a Python keyword"
        if not _is_known(argument) and not argument.has_default_value():
            return f"its argument {argument.name!r} has the type {argument.real_type}, which opwright does not support"
    for result in schema.returns:
        if result.alias_info is not None and not _is_written(result):
            return "it returns a view of an argument"
        if not _is_known(result):
            return f"it returns a result of the type {result.real_type}, which opwright does not support"
    return ""


def external_files(namespace: str, imports: list[str], operators: list[Registered]) -> dict[str, str]:
    """The text of each file of a library that describes `operators`, by the file's name."""
    described = [_described(one) for one in operators]
    text = render(
        "external_op.py.jinja",
        namespace=namespace,
        imports=imports,
        operators=described,
        with_torch=any("torch." in str(one) for one in described),
    )
    return {"op.py": text}


def _described(operator: Registered) -> dict[str, Any]:
    """The parts of the text for one operator."""
    name, _, overload = operator.name.partition(".")
    function = re.sub(r"\W", "_", f"{name}_{overload}".lower() if overload else name)
    positional = list(takewhile(_is_known, (one for one in operator.schema.arguments if not one.kwarg_only)))
    by_keyword = [
        one for one in operator.schema.arguments if one.kwarg_only and _is_known(one) and _name(one) == one.name
    ]
    mutates = [_name(argument) for argument in operator.schema.arguments if _is_written(argument)]
    options = []
    if function != operator.name:
        options.append(f'name="{operator.name}"')
    if mutates:
        options.append(f"mutates={mutates!r}".replace("'", '"'))
    elif not operator.has_gradient:
        options.append("differentiable=()")
    parameters = [*_parameters(positional), *(["*", *_parameters(by_keyword)] if by_keyword else [])]
    returned = [] if mutates else [_annotation(str(one.real_type)) for one in operator.schema.returns]
    return {
        "function": f"{function}_" if keyword.iskeyword(function) else function,
        "schema": textwrap.wrap(str(operator.schema), _WIDTH, break_on_hyphens=False),
        "options": ", ".join(options),
        "parameters": parameters,
        "returned": "None" if not returned else returned[0] if len(returned) == 1 else f"tuple[{', '.join(returned)}]",
        "sample": [_sample(argument) for argument in positional],
        "keywords": [f"{argument.name}={_sample(argument)}" for argument in by_keyword if not _has_default(argument)],
    }


def _parameters(arguments: list[Any]) -> list[str]:
    texts: list[str] = []
    all_later_have_defaults = True
    for argument in reversed(arguments):
        text = f"{_name(argument)}: {_annotation(str(argument.real_type))}"
        # A reference's default is a number, a string or None, and must not precede an argument without a default.
        all_later_have_defaults = all_later_have_defaults and _has_default(argument)
        texts.append(f"{text} = {argument.default_value!r}" if all_later_have_defaults else text)
    return texts[::-1]


def _has_default(argument: Any) -> bool:
    return argument.has_default_value() and isinstance(argument.default_value, (int, float, str, type(None)))


def _is_known(argument: Any) -> bool:
    return re.sub(r"Optional\[|List\[|\]", "", str(argument.real_type)) in _TYPES


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _name(argument: Any) -> str:
    """The argument's name in Python. PyTorch numbers the arguments of schemas that it infers from C++: `_0`."""
    if numbered := re.fullmatch(r"_(\d+)", argument.name):
        return f"argument_{numbered[1]}"
    return f"{argument.name}_" if keyword.iskeyword(argument.name) else str(argument.name)


def _annotation(type_: str) -> str:
    if inner := re.fullmatch(r"Optional\[(.*)\]", type_):
        return f"{_annotation(inner[1])} | None"
    if inner := re.fullmatch(r"List\[(.*)\]", type_):
        return f"list[{_annotation(inner[1])}]"
    return _TYPES.get(type_, (type_, ""))[0]


def _sample(argument: Any) -> str:
    type_ = str(argument.real_type)
    if _has_default(argument):
        return repr(argument.default_value)
    if type_.startswith("Optional["):
        return "None"
    if inner := re.fullmatch(r"List\[(.*)\]", type_):
        return f"[{_TYPES.get(inner[1], ('', 'None'))[1]}]"
    return _TYPES.get(type_, ("", "None"))[1]
