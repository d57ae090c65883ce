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
_CLASS = re.compile(r"__torch__\.torch\.classes\.(\w+)\.(\w+)")
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
        string = word[1:-1] if word[0] == '"' else None
        if (word if string is None else string) in refused:
            msg = f"it calls {word}, which can read or write files, or reach other processes"
            raise ValueError(msg)
        # Elsewhere it is the name of an attribute.
        if word == "ops" and tokens[at - 1 : at] != ["."]:
            match tokens[at + 1 : at + 6]:
                case [".", namespace, ".", operator, "("]:
                    why = why_not(namespace, operator)
                case _:
                    why = "it uses operators in another way than to call them"
            if why:
                raise ValueError(why)
    check_classes(text)


def check_classes(text: str) -> None:
    """Check that `text` names no class of C++ that does more than hold data.

    Raises:
        ValueError: it does.
    """
    for namespace, name in _CLASS.findall(re.sub(r"\s+", "", text)):
        if namespace in _PYTORCHS:
            msg = f"it holds an object of the class {namespace}.{name}, which is more than data"
            raise ValueError(msg)


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
