"""A small library that tests edit while it is open."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from opwright.loader.open import Loaded

DESCRIPTION = """
import opwright
import {namespace}_constants as constants
from torch import Tensor

library = opwright.Library("{namespace}", sources=["cpu.cpp"])


@library.op
def scale(x: Tensor, factor: float = 2.0{parameter}) -> Tensor:
    return x * factor * constants.VALUE{term}


scale.backward()


@library.op
def shifted(x: Tensor) -> Tensor:
    return x + constants.VALUE


@library.op
def {other}(x: Tensor) -> Tensor:
    return -x
"""
SOURCE = """
#include <opwright/check.h>
#include <opwright/empty.h>
#include <opwright/op.h>

using opwright::Tensor;

template <class Formula>
Tensor mapped(const Tensor& x, Formula formula) {{
    opwright::check::dtype(x, "x", {{opwright::ScalarType::Float}});
    opwright::check::contiguous(x, "x");
    Tensor result = opwright::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = static_cast<float>(formula(from[i]));
    return result;
}}

Tensor scale(const Tensor& x, double factor{parameter}) {{
    return mapped(x, [=](double value) {{ return value * factor * {value}{term}; }});
}}

Tensor scale_backward(const Tensor& grad, const Tensor& x, double factor{parameter}) {{
    return mapped(grad, [=](double value) {{ return value * factor * {value}; }});
}}

OPWRIGHT_IMPL({namespace}, CPU, m) {{
    m.impl("scale", OPWRIGHT_FN(scale));
    m.impl("scale_backward", OPWRIGHT_FN(scale_backward));
}}
"""


@dataclass
class Edited:
    """The folder of a library.

    `scale(x)` is `x * factor * value`, in native code with a native backward, and adds the argument `more` if
    `has_more`; `shifted(x)` is `x + value`, in Python; `other` names another operator, `-x`.
    """

    folder: Path
    namespace: str

    def edit(self, value: float = 1.0, *, has_more: bool = False, other: str = "negated") -> None:
        words = {"namespace": self.namespace, "value": value, "other": other}
        in_python = {"parameter": ", more: float = 0.0", "term": " + more"} if has_more else {}
        in_cpp = {"parameter": ", double more", "term": " + more"} if has_more else {}
        none = {"parameter": "", "term": ""}
        (self.folder / f"{self.namespace}_constants.py").write_text(f"VALUE = {value}\n")
        (self.folder / "op.py").write_text(DESCRIPTION.format(**words, **(in_python or none)))
        (self.folder / "cpu.cpp").write_text(SOURCE.format(**words, **(in_cpp or none)))

    def append(self, name: str, text: str) -> None:
        file = self.folder / name
        file.write_text(file.read_text() + text)

    def open(self) -> Loaded:
        return opwright.open(self.folder)


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Edited]]:
    """Creates a library with the given namespace, which can exist only once per process."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def make(namespace: str) -> Edited:
        library = Edited(tmp_path, namespace)
        library.edit()
        return library

    yield make
    for name in [name for name in sys.modules if name.endswith("_constants")]:
        del sys.modules[name]
