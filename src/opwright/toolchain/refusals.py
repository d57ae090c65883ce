"""Extracts from a compiler's output, in one sentence, why opwright's or PyTorch's headers rejected a kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The functions that refuse.h calls to make the compiler fail; their template arguments are the message.
_REFUSED = re.compile(
    r"\b(the_schema_and_the_kernel_differ|the_schema_is_malformed|no_such_operator_is_defined)\(\)"
    r"(?: \[with What = (.*)\])?"
)
_WORD = re.compile(r'(\w+)<(?:[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}|(\d+))>')
_PLACE = re.compile(r'^(\S+:\d+:\d+): +in .constexpr. expansion of .*?\("((?:[^"\\]|\\.)*)"\)')
_SCHEMA = re.compile(r'check_against<[\w:]*text<\d+>\{"((?:[^"\\]|\\.)*)"\}')
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


def refusal(leading: list[str], error: str) -> Refusal | None:
    """The refusal that `error` reports; None if it reports another error.

    Args:
        leading: the lines before the error, from the outermost expansion on.
        error: the line with the error.
    """
    refused = _REFUSED.search(error)
    if refused is None:
        return None
    words = [f"{name.replace('_', ' ')} {value or number}" for name, value, number in _WORD.findall(refused[2] or "")]
    place = next((found for line in leading if (found := _PLACE.match(line))), None)
    schema = next((found[1] for line in leading if (found := _SCHEMA.search(line))), None)
    where = f"{place[1]}: " if place else ""
    text = f"{where}error: {_SENTENCES[refused[1]]}{': ' if words else ''}{', '.join(words)}"
    if place:
        kernel = next((found[1] for line in leading if (found := re.search(r"kernel<&?([\w:]+)>", line))), None)
        text += f"\n  written: {_unescaped(place[2])}" + (f"\n  kernel:  {kernel}" if kernel else "")
    text += f"\n  schema:  {_unescaped(schema)}" if schema else ""
    return Refusal(text, is_signature=refused[1] == _SIGNATURE)


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
