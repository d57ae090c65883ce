"""Infers and parses schemas without PyTorch, for the types that most operators use.

PyTorch's own functions, which `spec.schema` uses otherwise, take a second to import. In case of doubt, the functions
here return None, and PyTorch's decide. Tests compare the two.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
import typing
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Types(NamedTuple):
    """PyTorch's types, or stand-ins for them: the classes `Tensor`, `dtype` and `device` of the module torch."""

    tensor: type
    dtype: type
    device: type


_TYPE = re.compile(r"(?P<base>\w+)(?P<alias>\([a-z]\w*!\))?(?P<marks>(?:\?|\[\])*)")
_ARGUMENT = re.compile(rf"{_TYPE.pattern} (?P<name>\w+)(?:=.*)?", flags=re.DOTALL)
# TorchScript's names for schema types.
_BASES = {name: name for name in ("Tensor", "float", "bool", "str", "ScalarType", "Device")} | {"SymInt": "int"}


def schema_from_annotations(
    reference: Callable[..., Any], name: str, mutates: Sequence[str], types: Types
) -> str | None:
    """The operator schema of `reference`, or None if PyTorch must infer or reject it."""
    signature = inspect.signature(reference)
    if not set(mutates) <= set(signature.parameters):
        return None
    arguments = list(_arguments(reference, signature, mutates, types))
    result = _results(_evaluated(reference, signature.return_annotation), types)
    if None in arguments or result is None:
        return None
    return f"{name}({', '.join(filter(None, arguments))}) -> {result}"


def arguments_from_text(schema: str) -> list[tuple[str, str, bool, bool]] | None:
    """The arguments of `schema` (name, TorchScript type, keyword-only, mutated), or None if PyTorch must parse it."""
    found = re.fullmatch(r"\w*\((.*)\) -> .*", schema, flags=re.DOTALL)
    if found is None:
        return None
    arguments = []
    keyword_only = False
    for text in _split(found[1]):
        if text == "*":
            keyword_only = True
            continue
        argument = _ARGUMENT.fullmatch(text)
        type_ = argument and _script_type(argument)
        if not argument or type_ is None:
            return None
        arguments.append((argument["name"], type_, keyword_only, argument["alias"] is not None))
    return arguments


def results_from_text(schema: str) -> list[str] | None:
    """The types of the results of `schema` in TorchScript syntax, or None if PyTorch must parse it."""
    result = schema.rpartition(" -> ")[2]
    texts = _split(result[1:-1]) if result.startswith("(") else [result]
    types = [_script_type(found) for text in texts if (found := _TYPE.fullmatch(text))]
    whole = [one for one in types if one is not None]
    return whole if len(whole) == len(texts) else None


def _script_type(found: re.Match[str]) -> str | None:
    script = _BASES.get(found["base"])
    for mark in re.findall(r"\?|\[\]", found["marks"]):
        script = script and (f"Optional[{script}]" if mark == "?" else f"List[{script}]")
    return script


def _split(text: str) -> list[str]:
    """The parts of `text` between unquoted commas."""
    parts = re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+', text)
    return [part.strip() for part in parts]


def _arguments(
    reference: Callable[..., Any], signature: inspect.Signature, mutates: Sequence[str], types: Types
) -> Iterator[str | None]:
    keyword_only = False
    for at, parameter in enumerate(signature.parameters.values()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            yield None
        if parameter.kind == parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            yield "*"
        type_ = _parameter_type(_evaluated(reference, parameter.annotation), types)
        if parameter.name in mutates:
            type_ = f"Tensor(a{at}!){type_[len('Tensor') :]}" if type_ and type_.startswith("Tensor") else None
        default = _default(parameter.default)
        yield None if type_ is None or default is None else f"{type_} {parameter.name}{default}"


def _default(value: Any) -> str | None:
    if value is inspect.Parameter.empty:
        return ""
    if value is None or isinstance(value, (int, float)):
        return f"={value}"
    return f'="{value}"' if isinstance(value, str) else None


def _evaluated(reference: Callable[..., Any], annotation: Any) -> Any:
    """The value of `annotation`, a string under `from __future__ import annotations`; `empty` if it has none."""
    try:
        return typing.get_type_hints(_Holder(annotation), getattr(reference, "__globals__", {}))["held"]
    except (NameError, TypeError, AttributeError, SyntaxError):
        return inspect.Parameter.empty


class _Holder:
    """An object with one annotation, for `typing.get_type_hints`."""

    def __init__(self, annotation: Any) -> None:
        self.__annotations__ = {"held": annotation}


def _parameter_type(annotation: Any, types: Types) -> str | None:
    """The schema's type for the annotation of a parameter: `T`, `T?`, `T[]`, and `Tensor?[]` or `int[]?`."""
    plain = _plain_type(annotation, types)
    if plain is not None:
        return plain
    optional = _within_optional(annotation)
    if optional is not None:
        listed = _plain_type(_within_list(optional), types)
        inner = f"{listed}[]" if listed in ("SymInt", "float", "bool") else _plain_type(optional, types)
        return inner and f"{inner}?"
    element = _within_list(annotation)
    if _plain_type(_within_optional(element), types) == "Tensor":
        return "Tensor?[]"
    listed = _plain_type(element, types)
    return f"{listed}[]" if listed in ("Tensor", "SymInt", "float", "bool") else None


def _result_type(annotation: Any, types: Types) -> str | None:
    if typing.get_origin(annotation) is list and _plain_type(_within_list(annotation), types) == "Tensor":
        return "Tensor[]"
    plain = _plain_type(annotation, types)
    return plain if plain in ("Tensor", "SymInt", "float", "bool") else None


def _results(annotation: Any, types: Types) -> str | None:
    if annotation in (None, type(None)):
        return "()"
    if typing.get_origin(annotation) is not tuple:
        return _result_type(annotation, types)
    each = [_result_type(one, types) for one in typing.get_args(annotation)]
    if None in each:
        return None
    text = ", ".join(filter(None, each))
    return f"(({text}))" if len(each) == 1 else f"({text})"


def _plain_type(annotation: Any, types: Types) -> str | None:
    named = {types.tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str"}
    named |= {types.dtype: "ScalarType", types.device: "Device"}
    return named.get(annotation) if isinstance(annotation, type) else None


def _within_optional(annotation: Any) -> Any:
    """T of `Optional[T]` or `T | None`; None for anything else."""
    members = typing.get_args(annotation)
    is_union = typing.get_origin(annotation) in (typing.Union, UnionType)
    left = [member for member in members if member is not type(None)]
    return left[0] if is_union and len(left) == 1 and len(members) == 2 else None


def _within_list(annotation: Any) -> Any:
    """T of `list[T]` or `Sequence[T]`; None for anything else."""
    is_list = typing.get_origin(annotation) in (list, collections.abc.Sequence)
    return typing.get_args(annotation)[0] if is_list else None
