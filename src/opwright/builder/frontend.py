"""Compiles sources without the parts of PyTorch's C++ API that they do not name.

`torch/extension.h`, `torch/torch.h` and `torch/script.h` include PyTorch's entire C++ frontend (`torch::nn`,
`torch::optim`, `torch::data`, `torch::save`, `torch::jit`), pybind11 and autograd. Few sources use much of it, and it
takes longer to compile than the rest. The headers of the same names in `without_frontend/` omit it. A source that does
not compile with them is compiled with PyTorch's own, so that the outcome of a build never depends on them.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.abi import authors_files
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opwright.builder.ninja import Unit

_HEADERS = Path(__file__).with_name("without_frontend")
_STANDS_IN = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*[<"]torch/(?:all|extension|python|script|torch)\.h[>"]', re.MULTILINE
)
_NAMES_IT = re.compile(
    r"\b(?:nn|optim|data|script|serialize)::|\btorch::(?:save|load|python)\b|\bnamespace nn\b|\bjit\b"
)
# Parts that a source may name, by the macro with which the headers include them.
_PARTS = {
    "OPWRIGHT_NAMES_AUTOGRAD": re.compile(r"[Aa]utograd|AutoGrad|variable_list"),
    "OPWRIGHT_NAMES_OPERATORS": re.compile(r"Operator"),
    "OPWRIGHT_NAMES_PYBIND11": re.compile(r"\bpy::|pybind|PYBIND|\bTHP"),
}
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(.*)$", re.MULTILINE)
# Flags that name folders of headers. The folder of the headers without the frontend comes first.
_FOLDERS = ("-I", "-isystem", "-iquote")
_ERROR = re.compile(r"\berror\b[: ].*", re.IGNORECASE)
# In the quotes of g++ and clang, which depend on the locale.
_QUOTED = re.compile("[\u2018'\"]([^\u2019'\"]+)[\u2019'\"]")
_WORD = re.compile(r"[A-Za-z_]\w*")


def without_frontend(unit: Unit, include_dirs: Iterable[Path]) -> tuple[str, ...] | None:
    """The command line that compiles `unit` without the frontend; None if it would not help, or if `unit` uses it.

    Args:
        unit: a source, and the command line that compiles it with PyTorch's own headers.
        include_dirs: the folders to search for the author's own headers.
    """
    texts = [path.read_text(errors="replace") for path in authors_files([unit.source], include_dirs)]
    if not any(map(_STANDS_IN.search, texts)) or any(map(_NAMES_IT.search, texts)):
        return None
    at = next((at for at, word in enumerate(unit.command) if word.startswith(_FOLDERS)), len(unit.command))
    frontend = _frontend(find_pytorch().include_dirs[0])
    asked = {word for text in texts for condition in _CONDITION.findall(text) for word in _WORD.findall(condition)}
    if any(re.search(rf"#[ \t]*define[ \t]+{word}\b", frontend) for word in asked):
        return None
    named = [f"-D{macro}" for macro, words in _PARTS.items() if any(map(words.search, texts))]
    return (*unit.command[:at], f"-I{_HEADERS}", *named, *unit.command[at:])


def may_need_frontend(output: str) -> bool:
    """Whether the errors that the compiler printed may be due to the missing frontend, not to the author's code."""
    errors = _ERROR.findall(output)
    words = [{word for text in _QUOTED.findall(error) for word in _WORD.findall(text)} for error in errors]
    known = set(_WORD.findall(_frontend(find_pytorch().include_dirs[0])))
    return not errors or any(not names or names & known for names in words)


@functools.cache
def _frontend(headers: Path) -> str:
    """The text of the omitted headers.

    Args:
        headers: the folder of PyTorch's headers.
    """
    folder = headers / "torch" / "csrc" / "api" / "include" / "torch"
    parts = ("nn", "optim", "data", "serialize", "python", "detail")
    files = [file for part in parts for file in sorted((folder / part).rglob("*.h"))]
    alone = ("nn", "optim", "data", "serialize", "python", "ordered_dict", "expanding_array", "arg", "jit")
    files += [folder / f"{part}.h" for part in alone]
    others = (
        *("jit/api/module", "jit/api/object", "jit/api/compilation_unit", "jit/runtime/custom_operator"),
        *("jit/serialization/import", "jit/serialization/pickle"),
        *("autograd/autograd", "autograd/custom_function", "autograd/function"),
        *("Dtype", "DynamicTypes", "Exceptions", "autograd/python_variable", "utils/pybind"),
    )
    files += [headers / "torch" / "csrc" / f"{part}.h" for part in others]
    return "".join(file.read_text(errors="replace") for file in files if file.is_file())
