"""Reads what JSON holds as a dataclass: exactly the keys that it has, and the types that its annotations say."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, Literal

from opwright.errors import BundleError

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def read_as(kind: Any, value: Any, place: str, file: str) -> Any:
    """`value` as `kind`: a dataclass, a tuple, a dict by text, a Literal of texts, a scalar, or a union with None.

    Args:
        kind: the annotation.
        value: what JSON gave.
        place: where in the whole it stands, with dots between; empty for the whole.
        file: its name, for messages.

    Raises:
        BundleError: it is something else; the message names the place.
    """
    origin = typing.get_origin(kind)
    if origin in {types.UnionType, typing.Union}:
        return _read_union(kind, value, place, file)
    if origin is tuple:
        return _read_list(kind, value, place, file)
    if origin is dict:
        if not isinstance(value, dict):
            raise unexpected(value, "an object", place, file)
        return {key: read_as(typing.get_args(kind)[1], item, _join(place, key), file) for key, item in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        return _read_object(kind, value, place, file)
    return _read_scalar(kind, value, place, file)


def unexpected(value: object, expected: str, place: str, file: str) -> BundleError:
    """The error for a value that is not what it should be."""
    where = f"{place!r}" if place else "the whole"
    return BundleError(f"{file}: {where} must be {expected}, got {value!r:.100}")


def _read_union(kind: Any, value: Any, place: str, file: str) -> Any:
    inner = typing.get_args(kind)
    if value is None and type(None) in inner:
        return None
    plain = [one for one in inner if one is not type(None)]
    # A scalar or an object, at most one of each: told apart by what is there.
    chosen = next((one for one in plain if is_dataclass(one) == isinstance(value, dict)), plain[0])
    return read_as(chosen, value, place, file)


def _read_list(kind: Any, value: Any, place: str, file: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise unexpected(value, "a list", place, file)
    inner = typing.get_args(kind)
    kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
    if len(kinds) != len(value):
        raise unexpected(value, f"a list of {len(kinds)}", place, file)
    pairs = zip(kinds, value, strict=True)
    return tuple(read_as(one, item, f"{place}[{at}]", file) for at, (one, item) in enumerate(pairs))


def _read_object(kind: type[Any], value: Any, place: str, file: str) -> Any:
    if not isinstance(value, dict):
        raise unexpected(value, "an object", place, file)
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    for name in names:
        if name not in value:
            msg = f"{file}: the key {_join(place, name)!r} is missing"
            raise BundleError(msg)
    for name in value:
        if name not in names:
            msg = f"{file}: the key {_join(place, name)!r} is unknown: expected {', '.join(names)}"
            raise BundleError(msg)
    return kind(**{name: read_as(hints[name], value[name], _join(place, name), file) for name in names})


def _read_scalar(kind: Any, value: Any, place: str, file: str) -> Any:
    if typing.get_origin(kind) is Literal:
        known = typing.get_args(kind)
        if not isinstance(value, str) or value not in known:
            raise unexpected(value, " or ".join(map(repr, known)), place, file)
        return value
    accepted = (int, float) if kind is float else kind
    # In Python a bool is an int; in JSON it is not.
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, accepted):
        raise unexpected(value, _WORDS[kind], place, file)
    if isinstance(value, float) and not math.isfinite(value):
        raise unexpected(value, "a finite number", place, file)
    return value


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
