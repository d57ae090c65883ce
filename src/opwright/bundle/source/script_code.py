"""Validates TorchScript source that only computes, and calls nothing that accesses files or other processes.

The text is split into the few kinds of tokens that PyTorch writes and that its own parser splits in the same way, so a
name cannot hide.
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
# PyTorch writes only unprintable characters as numbers.
_PRINTABLE = re.compile(r"\\(0[4-7]|1[0-7])[0-7]")
# PyTorch's namespaces of C++ classes that hold more than packed weights. Those of other libraries are the user's own.
_PYTORCHS = frozenset(
    (
        *("_nnapi", "aten", "backendutils", "c10d", "dist_c10d", "dist_rpc", "inductor", "profiling", "profiler"),
        *("cuda", "xpu", "mtia", "rpc", "tensorexpr"),
    )
)


def check_code(code: bytes, name: str) -> None:
    """Check TorchScript source text.

    Args:
        code: the text.
        name: the name of its record.

    Raises:
        ValueError: it calls something that accesses files or other processes, or PyTorch does not write such text.
    """
    try:
        text = code.decode("ascii")
    except UnicodeDecodeError as error:
        msg = f"{name} inside it is not code as PyTorch writes it"
        raise ValueError(msg) from error
    tokens = _tokens(text, name)
    refused = refused_names()
    for at, word in enumerate(tokens):
        if word.strip('"') in refused:
            msg = f"it calls {word}, which can read or write files, or reach other processes"
            raise ValueError(msg)
        # After a dot, it is the name of an attribute.
        if word in {"ops", "__torch__"} and tokens[at - 1 : at] != ["."]:
            _check_named(word, tokens[at + 1 : at + 9])


def check_class(name: str) -> None:
    """Check that a class, such as `__torch__.torch.classes.quantized.LinearPackedParamsBase`, only holds data.

    Raises:
        ValueError: it does more than that.
    """
    _check_named("__torch__", [*re.split(r"(\.)", name.removeprefix("__torch__"))[1:], "("])


def _check_named(root: str, rest: list[str]) -> None:
    """Check what `ops` or `__torch__` and the tokens after it name: a complete name, and no alias for a part."""
    why = ""
    match root, rest:
        case "ops", [".", namespace, ".", operator, "(", *_]:
            why = why_not(namespace, operator)
        case "__torch__", [".", "torch", ".", "classes", ".", namespace, ".", name, *_]:
            if namespace in _PYTORCHS:
                why = f"it holds an object of the class {namespace}.{name}, which holds more than data"
        case "__torch__", [".", "torch", ".", name, *_] if name != "classes":
            pass
        case "__torch__", [".", name, *_] if name != "torch":
            pass
        case _:
            why = f"it uses {root} in a way that PyTorch does not"
    if why:
        raise ValueError(why)


def _tokens(text: str, name: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        # PyTorch concatenates adjacent strings.
        beside = found is not None and found.lastgroup == "text" and tokens[-1:] and tokens[-1][0] == '"'
        if found is None or beside or (found.lastgroup == "text" and _PRINTABLE.search(found[0])):
            line = text[:at].count("\n") + 1
            msg = f"line {line} of {name} inside it is not code as PyTorch writes it"
            raise ValueError(msg)
        if found.lastgroup != "space":
            tokens.append(found[0])
        at = found.end()
    return tokens
