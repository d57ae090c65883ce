"""Accepts source text of TorchScript that computes, and calls nothing that reaches files or other processes.

The text is cut into the few kinds of tokens that PyTorch writes, and that its own parser cuts in the same way: a name
cannot hide.
"""

from __future__ import annotations

import re

from opwright.bundle.source.operators import refused_names, why_not

_TOKEN = re.compile(
    r"(?P<space>[ \n]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\[\\'\"abfnrtv]|\\[0-7]{3})*\")"
    r"|(?P<number>[0-9][0-9A-Za-z_.]*)"
    r"|(?P<sign>[-+*/%@=<>!&|^~.,:;()\[\]{}])"
)
# Only what cannot be printed is written as a number.
_PRINTABLE = re.compile(r"\\(0[4-7]|1[0-7])[0-7]")
# Classes that C++ defines and that hold packed weights. Those of the user's own libraries are the user's.
_PYTORCHS = frozenset(
    (
        *("_nnapi", "aten", "backendutils", "c10d", "dist_c10d", "dist_rpc", "inductor", "profiling", "profiler"),
        *("cuda", "xpu", "mtia", "rpc", "tensorexpr"),
    )
)


def check_code(code: bytes, name: str) -> None:
    """Check source text of TorchScript.

    Args:
        code: the text.
        name: the name of the record that it is.

    Raises:
        ValueError: it calls something that reaches out of the process, or is not written as PyTorch writes it.
    """
    try:
        text = code.decode("ascii")
    except UnicodeDecodeError as error:
        msg = f"{name} inside it is not written as PyTorch writes code"
        raise ValueError(msg) from error
    tokens = _tokens(text, name)
    refused = refused_names()
    for at, word in enumerate(tokens):
        if word.strip('"') in refused:
            msg = f"it calls {word}, which can read or write files, or reach other processes"
            raise ValueError(msg)
        # Behind a dot it is the name of an attribute.
        if word in {"ops", "__torch__"} and tokens[at - 1 : at] != ["."]:
            _check_named(word, tokens[at + 1 : at + 9])


def check_class(name: str) -> None:
    """Check that a class, such as `__torch__.torch.classes.quantized.LinearPackedParamsBase`, only holds data.

    Raises:
        ValueError: it does more.
    """
    _check_named("__torch__", [*re.split(r"(\.)", name.removeprefix("__torch__"))[1:], "("])


def _check_named(root: str, rest: list[str]) -> None:
    """Check what is named by `ops` or `__torch__` and the tokens behind it: all of a name, and no alias for a part."""
    why = ""
    match root, rest:
        case "ops", [".", namespace, ".", operator, "(", *_]:
            why = why_not(namespace, operator)
        case "__torch__", [".", "torch", ".", "classes", ".", namespace, ".", name, *_]:
            if namespace in _PYTORCHS:
                why = f"it holds an object of the class {namespace}.{name}, which is more than data"
        case "__torch__", [".", "torch", ".", name, *_] if name != "classes":
            pass
        case "__torch__", [".", name, *_] if name != "torch":
            pass
        case _:
            why = f"it uses {root} in another way than PyTorch does"
    if why:
        raise ValueError(why)


def _tokens(text: str, name: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        # Two strings behind each other are one string for PyTorch.
        beside = found is not None and found.lastgroup == "text" and tokens[-1:] and tokens[-1][0] == '"'
        if found is None or beside or (found.lastgroup == "text" and _PRINTABLE.search(found[0])):
            line = text[:at].count("\n") + 1
            msg = f"line {line} of {name} inside it is not written as PyTorch writes code"
            raise ValueError(msg)
        if found.lastgroup != "space":
            tokens.append(found[0])
        at = found.end()
    return tokens
