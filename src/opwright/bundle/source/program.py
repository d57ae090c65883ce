"""Validates the description of an exported program: its JSON, field by field, as PyTorch's schema lists them."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import types
import typing
import zipfile
from typing import TYPE_CHECKING, Any

from torch._export.serde import schema
from torch._export.serde.union import _Union

from opwright.bundle.source.expressions import IDENTIFIER, check_guard, check_size
from opwright.bundle.source.operators import check_function
from opwright.bundle.source.trees import WORD, check_inputs, check_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

# Names of weights: those of modules and their keys, joined with dots.
_PATH = re.compile(r"[A-Za-z0-9_:@+\- ]{1,200}(\.[A-Za-z0-9_:@+\- ]{1,200}){0,99}")
_VERSION = re.compile(r"[A-Za-z0-9_.+<=]{0,100}")
_MANY = re.compile(r"(u|zuf)(?![0-9]{1,6}$)")
_INFINITE = frozenset({"Infinity", "-Infinity", "NaN"})
_MOST_BITS = 128
# The fields of the schema's classes, with their types.
_HINTS: dict[type[Any], dict[str, Any]] = {
    cls: typing.get_type_hints(cls, globalns=vars(schema))
    for cls in vars(schema).values()
    if isinstance(cls, type) and (dataclasses.is_dataclass(cls) or issubclass(cls, _Union))
}
# Fields that only people read, and code for other programs.
_DROPPED: frozenset[tuple[str, str]] = frozenset(
    {("Node", "metadata"), ("GraphModule", "metadata"), ("GraphModule", "treespec_namedtuple_fields")}
)
# Objects whose classes only C++ or Python defines: creating them runs code of these classes.
_CUSTOM = frozenset({"as_custom_obj", "custom_obj", "custom_obj_values", "token"})
_ASSERTIONS = re.compile(r"torch\.ops\.aten\._assert_\w+\.\w+")
_UNPRINTED = re.compile(r"[^A-Za-z0-9_ .:,;+\-=<>()]")


def checked_program(data: bytes) -> bytes:
    """Check the description of an exported program, and remove everything that PyTorch would run as code.

    Raises:
        ValueError: it contains something that PyTorch would run, or that is not in PyTorch's schema.
        BadZipFile: it is damaged.
    """
    program: dict[str, Any] = _checked(schema.ExportedProgram, _parsed(data))
    return json.dumps(program).encode()


def checked_payloads(data: bytes) -> dict[str, Any]:
    """Check the list of the weights or constants of an exported program; returns the facts of each, keyed by name.

    Raises:
        ValueError: it contains something that is not in PyTorch's schema.
        BadZipFile: it is damaged.
    """
    payloads: dict[str, Any] = _checked(schema.PayloadConfig, _parsed(data))["config"]
    return payloads


def check_path(name: object) -> None:
    """Check the name of a weight.

    Raises:
        ValueError: it could be more than a name.
    """
    inner = isinstance(name, str) and any(part[:2] == part[-2:] == "__" for part in name.split("."))
    if not isinstance(name, str) or inner or _PATH.fullmatch(name) is None:
        msg = f"it has {name!r:.100} as the name of a weight"
        raise ValueError(msg)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        msg = f"its JSON is damaged ({error})"
        raise zipfile.BadZipFile(msg) from error


def _identifier(text: str) -> None:
    if IDENTIFIER.fullmatch(text) is None:
        msg = f"it has {text!r:.100} as a name"
        raise ValueError(msg)


def _identifier_or_none(text: str) -> None:
    if text:
        _identifier(text)


def _range(text: str) -> None:
    check_size(text)
    # PyTorch counts up to the number of such a symbol, one by one.
    if _MANY.match(text):
        msg = f"it has {text!r:.100} as a size"
        raise ValueError(msg)


def _word(text: str) -> None:
    if WORD.fullmatch(text) is None:
        msg = f"it has the text {text!r:.100}, which could become part of a program"
        raise ValueError(msg)


def _version(text: str) -> None:
    if _VERSION.fullmatch(text) is None:
        msg = f"it has {text!r:.100} as a version"
        raise ValueError(msg)


# The check of each text, by class and field; all other texts are identifiers.
_TEXTS: dict[tuple[str, str], Callable[[str], None]] = {
    ("SymExpr", "expr_str"): check_size,
    ("Argument", "as_string"): _word,
    ("Argument", "as_strings"): _word,
    ("Argument", "as_operator"): check_function,
    ("ConstantValue", "as_string"): _word,
    ("NamedArgument", "name"): _identifier_or_none,
    ("Node", "target"): check_function,
    ("Node", "name"): _identifier_or_none,
    ("InputToConstantInputSpec", "name"): _identifier_or_none,
    ("InputToParameterSpec", "parameter_name"): check_path,
    ("InputToBufferSpec", "buffer_name"): check_path,
    ("InputToTensorConstantSpec", "tensor_constant_name"): check_path,
    ("BufferMutationSpec", "buffer_name"): check_path,
    ("ParameterMutationSpec", "parameter_name"): check_path,
    ("GradientToParameterSpec", "parameter_name"): check_path,
    ("PayloadConfig", "config"): check_path,
    ("ModuleCallEntry", "fqn"): _identifier_or_none,
    ("ModuleCallSignature", "in_spec"): check_inputs,
    ("ModuleCallSignature", "out_spec"): check_outputs,
    ("ExportedProgram", "range_constraints"): _range,
    ("ExportedProgram", "torch_version"): _version,
    ("ExportedProgram", "guards_code"): check_guard,
}


def _checked(cls: type[Any], data: Any) -> dict[str, Any]:
    """Check that `data` is an object of a class of the schema, with only its fields and their types."""
    is_object = isinstance(data, dict)
    if not is_object:
        msg = f"its JSON has {data!r:.60} where PyTorch expects an object ({cls.__name__})"
        raise ValueError(msg)
    hints = _HINTS[cls]
    _check_fields(cls, data, set(hints))
    made = {
        name: _value(hint, _plain(cls, data, name), (cls.__name__, name))
        for name, hint in hints.items()
        if name in data
    }
    if _CUSTOM & {name for name, value in made.items() if value}:
        msg = "it holds an object of a class that is not PyTorch's tensor"
        raise ValueError(msg)
    return made


def _check_fields(cls: type[Any], data: dict[str, Any], known: set[str]) -> None:
    if issubclass(cls, _Union):
        if len(data) != 1 or not set(data) <= known:
            msg = f"its JSON has {sorted(data)!r:.60} where PyTorch expects exactly one alternative ({cls.__name__})"
            raise ValueError(msg)
    elif missing := sorted(_required(cls) - set(data)):
        msg = f"its JSON has no {cls.__name__}.{missing[0]}"
        raise zipfile.BadZipFile(msg)


def _plain(cls: type[Any], data: dict[str, Any], name: str) -> Any:
    """The value of a field, without unnecessary parts."""
    match cls.__name__, name:
        case key if key in _DROPPED:
            return {}
        case "GraphModule", "module_call_graph":
            return _outermost(data[name])
        case "Node", "inputs" if _ASSERTIONS.fullmatch(str(data.get("target"))):
            return _with_plain_messages(data[name])
    return data[name]


def _required(cls: type[Any]) -> set[str]:
    missing = dataclasses.MISSING
    return {one.name for one in dataclasses.fields(cls) if one.default is missing and one.default_factory is missing}


def _outermost(entries: Any) -> Any:
    """Only the call of the whole module: the others serve to split a program into modules."""
    return [one for one in entries if isinstance(one, dict) and not one.get("fqn")] if isinstance(entries, list) else []


def _with_plain_messages(inputs: Any) -> Any:
    """The arguments of an assertion, whose message may contain anything."""
    if not isinstance(inputs, list):
        return inputs
    made = []
    for given in inputs:
        match given:
            case {"arg": {"as_string": str(message)}}:
                made.append({**given, "arg": {"as_string": _UNPRINTED.sub(" ", message)[:1000]}})
            case _:
                made.append(given)
    return made


def _value(hint: Any, value: Any, key: tuple[str, str]) -> Any:
    """Check that `value` is of the type `hint`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        (inner,) = (argument for argument in arguments if argument is not type(None))
        made = None if value is None else _value(inner, value, key)
    elif origin is list and isinstance(value, list):
        made = [_value(arguments[0], one, key) for one in value]
    elif origin is dict and isinstance(value, dict):
        _check_keys(value, key)
        made = {name: _value(arguments[1], one, key) for name, one in value.items()}
    elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
        made = _checked(hint, value)
    elif _is_scalar(hint, value):
        if isinstance(value, str) and hint is str:
            _TEXTS.get(key, _identifier)(value)
        made = value
    else:
        msg = f"its JSON has {value!r:.60} as {key[0]}.{key[1]}"
        raise ValueError(msg)
    return made


def _is_scalar(hint: Any, value: Any) -> bool:
    # A bool is an int in Python, but not in JSON.
    if hint is float:
        return type(value) in {int, float} or (isinstance(value, str) and value in _INFINITE)
    if isinstance(hint, type) and issubclass(hint, enum.IntEnum):
        return type(value) is int and value in set(hint)
    return hint in {str, int, bool} and type(value) is hint and not (hint is int and value.bit_length() > _MOST_BITS)


def _check_keys(value: dict[str, Any], key: tuple[str, str]) -> None:
    for name in value:
        _TEXTS.get(key, _identifier)(name)
