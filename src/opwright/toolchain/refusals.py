"""Extracts from a compiler's output, in one sentence, why opwright's or PyTorch's headers rejected a kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The functions that refuse.h calls to make the compiler fail; their template arguments are the message.
_FUNCTIONS = r"(the_schema_and_the_kernel_differ|the_schema_is_malformed|no_such_operator_is_defined)"
_REFUSED = re.compile(rf"\b{_FUNCTIONS}\(\)(?: \[with What = (.*)\])?")
# A name and its text or its number; before version 16, clang++ prints the characters of a text as numbers.
_WORD = re.compile(r'(\w+)<(?:[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}|(\d+)|\{\{([\d, .]+)\}\})>')
_PLACE = re.compile(r'^(\S+:\d+:\d+): +in .constexpr. expansion of .*?\("((?:[^"\\]|\\.)*)"\)')
_SCHEMA = re.compile(r'check_against<[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}')
# clang++ reports the call that was to be evaluated, and then, in notes, the calls inside it, from the innermost one on.
_CLANG_CALL = re.compile(r"^(\S+:\d+:\d+): error: call to consteval function '(?:.*\bkernel<&(.+?)>)?")
_CLANG_REFUSED = re.compile(rf"note: non-constexpr function '{_FUNCTIONS}(?:<(.*)>)?' cannot be used")
_CLANG_TEXTS = re.compile(r"note: in call to 'refuse(?:<.*>)?\(\d+, (&.*)\)'$")
_CLANG_WRITTEN = re.compile(r"""note: in call to '\w+(?:<\w+>)?\("((?:[^"\\]|\\.)*)"\)'$""")
_CLANG_TEXT = re.compile(r'&"((?:[^"\\]|\\.)*)"\[0\]')
_SIGNATURE = "the_schema_and_the_kernel_differ"
_SENTENCES = {
    _SIGNATURE: "the schema and the kernel differ",
    "the_schema_is_malformed": "the schema is malformed",
    "no_such_operator_is_defined": "no operator of this name is defined",
}
# An error in PyTorch's own headers, and the author's line that registers the kernel. g++ prints the line before the
# error, clang++ and nvcc after it.
_IN_TORCH = re.compile(r"^\S*/torch/include/(?:ATen/core|c10|torch)/[^\s:(]+[:(]\d+.*?error: (.*)")
_TORCH_PLACE = re.compile(
    r"^(\S+?:\d+:\d+): +required from here|^(\S+?:\d+:\d+): note: in instantiation .* requested here"
    r"|at line (\d+) of (\S+)"
)
_REGISTRATION = re.compile(r"CppFunction|torch::Library::(?:def|impl)\b")
_KERNEL = re.compile(r"\bFunc = c10::CompileTimeFunctionPointer<(.+?\)), &?([\w:]+)>")
_POINTER = re.compile(r"\bFunc = ([^;\]]+\))(?=[;\]])")
_PREFIX = re.compile(
    r"^static assertion failed(?: due to requirement .*?| with)?:? ?\"?(?:INVALID TYPE: "
    r"|You tried to register a kernel with an unsupported (?:integral )?(?:input|output) type[:.] ?)?"
)
# The messages of PyTorch's headers, and what to use in C++ instead.
_INSTEAD = (
    (re.compile(r"vector<bool>"), "std::vector<bool>: use c10::List<bool>"),
    (re.compile(r"float is not supported|type: float\b"), "float: use double, which the schema calls float"),
    (re.compile(r"integral"), "an integer other than int64_t: use int64_t, which the schema calls int"),
    (re.compile(r"const char\*"), "const char*: use std::string_view, which the schema calls str"),
)


@dataclass(frozen=True)
class Refusal:
    """Why opwright's or PyTorch's headers rejected a kernel.

    Attributes:
        text: the reason in one sentence, with its location in the author's source.
        is_signature: whether the kernel's signature differs from its schema.
    """

    text: str
    is_signature: bool


def refusal(leading: list[str], error: str, following: list[str]) -> Refusal | None:
    """The refusal that `error` reports; None if it reports another error.

    Args:
        leading: the lines before the error, from the outermost expansion on.
        error: the line with the error.
        following: the lines between it and the next error.
    """
    if (refused := _REFUSED.search(error)) is None:
        return _clang_refusal(error, following)
    words = [f"{name.replace('_', ' ')} {text or number}" for name, text, number, _ in _WORD.findall(refused[2] or "")]
    place = next((found for line in leading if (found := _PLACE.match(line))), None)
    kernel = next((found[1] for line in leading if (found := re.search(r"kernel<&?([\w:]+)>", line))), None)
    schema = next((found[1] for line in leading if (found := _SCHEMA.search(line))), None)
    if place is None:
        return _refusal("", refused[1], words, schema=schema)
    return _refusal(place[1], refused[1], words, written=place[2], kernel=kernel, schema=schema)


def _clang_refusal(error: str, following: list[str]) -> Refusal | None:
    call = _CLANG_CALL.match(error)
    refused = next((found for line in following if (found := _CLANG_REFUSED.search(line))), None)
    if call is None or refused is None:
        return None
    texts = next((_CLANG_TEXT.findall(found[1]) for line in following if (found := _CLANG_TEXTS.search(line))), [])
    written = next((found[1] for line in reversed(following) if (found := _CLANG_WRITTEN.search(line))), None)
    schema, *whole = texts or [None]  # in template arguments, clang++ shortens a long text
    words = []
    for name, text, number, characters in _WORD.findall(refused[2] or ""):
        shown = number or (whole.pop(0) if whole else text or _decoded(characters))
        words.append(f"{name.replace('_', ' ')} {shown}")
    return _refusal(call[1], refused[1], words, written=written, kernel=call[2], schema=schema)


def _decoded(characters: str) -> str:
    """The text of which clang++ prints the first ten characters, as numbers."""
    return "".join(chr(int(one)) if one.isdecimal() else one for one in characters.split(", ")).rstrip("\0")


def _refusal(
    place: str,
    function: str,
    words: list[str],
    *,
    written: str | None = None,
    kernel: str | None = None,
    schema: str | None = None,
) -> Refusal:
    where = f"{place}: " if place else ""
    lines = [f"{where}error: {_SENTENCES[function]}{': ' if words else ''}{', '.join(words)}"]
    lines += [f"  written: {_unescaped(written)}"] if written is not None else []
    lines += [f"  kernel:  {kernel}"] if kernel else []
    lines += [f"  schema:  {_unescaped(schema)}"] if schema else []
    return Refusal("\n".join(lines), is_signature=function == _SIGNATURE)


def torch_refusal(leading: list[str], error: str, following: list[str]) -> Refusal | None:
    """The refusal of PyTorch's own headers that `error` reports; None if it reports another error.

    Args:
        leading: the lines before the error that belong to it.
        error: the line with the error.
        following: the lines after it that belong to it.
    """
    found = _IN_TORCH.match(error)
    around = [*leading, *following]
    if found is None or not any(_REGISTRATION.search(line) for line in around):
        return None
    places = [place for line in around if (place := _TORCH_PLACE.search(line))]
    if not places:
        return None
    place = places[-1]
    where = place[1] or place[2] or f"{place[4]}:{place[3]}"
    message = _PREFIX.sub("", found[1]).rstrip('"')
    what = next((instead for pattern, instead in _INSTEAD if pattern.search(found[1])), message)
    text = f"{where}: error: PyTorch does not support a type in the signature of this kernel: {what}"
    if kernel := next((kernel for line in around if (kernel := _KERNEL.search(line))), None):
        text += f"\n  kernel:    {kernel[2]}\n  signature: {kernel[1]}"
    elif pointer := next((pointer for line in around if (pointer := _POINTER.search(line))), None):
        text += f"\n  signature: {pointer[1].replace(' (*)', '')}"
    return Refusal(text, is_signature=False)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
