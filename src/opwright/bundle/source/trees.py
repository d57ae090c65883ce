"""Validates descriptions of nested inputs and outputs, which may only contain tuples, lists and dicts."""

from __future__ import annotations

import json
import re
from typing import Any

from opwright.bundle.source.expressions import IDENTIFIER

# Text that stays text where PyTorch copies it into Python and C++ programs, between quotes or into comments.
WORD = re.compile(r"(?!.*(\*/|/\*))[A-Za-z0-9_ .:,;+\-*/%()=<>~@]{0,4000}")
_PROTOCOL = 1
_SEQUENCES = frozenset({"builtins.tuple", "builtins.list"})
_DICTS = frozenset({"builtins.dict", "collections.OrderedDict"})
_FIELDS = {"type", "context", "children_spec"}


def check_outputs(text: str) -> None:
    """Check how outputs are nested, in the format of `torch.utils._pytree.treespec_dumps`.

    Raises:
        ValueError: the description contains anything but tuples, lists and dicts with plain keys.
    """
    _checked(text)


def check_inputs(text: str) -> None:
    """Check how inputs are nested: like `check_outputs`, but the names of keyword arguments must be identifiers.

    Raises:
        ValueError: the description contains anything else.
    """
    match _checked(text):
        case {"children_spec": [_, {"type": kind, "context": str(keys)}]} if kind in _DICTS:
            right = all(isinstance(key, str) and IDENTIFIER.fullmatch(key) for key in json.loads(keys))
        case _:
            right = False
    if not right:
        raise _wrong(text)


def _checked(text: str) -> dict[str, Any]:
    try:
        protocol, tree = json.loads(text)
        right = protocol == _PROTOCOL and _is_tree(tree)
    except (ValueError, TypeError, RecursionError):
        right = False
    if not right:
        raise _wrong(text)
    checked: dict[str, Any] = tree
    return checked


def _is_tree(tree: Any) -> bool:
    if not isinstance(tree, dict) or set(tree) != _FIELDS or not isinstance(tree["children_spec"], list):
        return False
    kind, context, children = tree["type"], tree["context"], tree["children_spec"]
    if kind is None:
        return context is None and not children
    if kind in _SEQUENCES:
        right = context in {"null", None}
    else:
        keys: Any = json.loads(context) if kind in _DICTS else None
        right = isinstance(keys, list) and len(keys) == len(children) and all(map(_is_key, keys))
    return right and all(map(_is_tree, children))


def _is_key(key: object) -> bool:
    return type(key) is int or (isinstance(key, str) and WORD.fullmatch(key) is not None)


def _wrong(text: str) -> ValueError:
    found = re.sub(r'[^A-Za-z0-9_.:,"\[\] ]', "", text)
    return ValueError(f"its inputs or outputs are nested in something other than tuples, lists and dicts: {found:.200}")
