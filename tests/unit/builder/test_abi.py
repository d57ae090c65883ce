from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.builder.abi import abi_of, makes_python_module

if TYPE_CHECKING:
    from pathlib import Path


def _source(folder: Path, text: str, name: str = "a.cpp") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "header",
    [
        "torch/script.h",
        "torch/extension.h",
        "torch/library.h",
        "torch/all.h",
        "ATen/ATen.h",
        "ATen/core/Tensor.h",
        "c10/util/Half.h",
    ],
)
def test_pytorchs_own_headers_make_it_full(tmp_path: Path, header: str) -> None:
    assert abi_of([_source(tmp_path, f"#include <{header}>\n")]) == "full"
    assert abi_of([_source(tmp_path, f'  #  include "{header}"\n')]) == "full"


@pytest.mark.parametrize(
    "header",
    [
        "opwright/op.h",
        "torch/csrc/stable/library.h",
        "torch/headeronly/core/ScalarType.h",
        "torch/csrc/inductor/aoti_torch/c/shim.h",
        "vector",
    ],
)
def test_stable_headers_and_others_leave_it_stable(tmp_path: Path, header: str) -> None:
    assert abi_of([_source(tmp_path, f"#include <{header}>\n")]) == "stable"


def test_a_header_of_ones_own_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    _source(tmp_path / "include", '#include "deeper.h"\n', "mine.h")
    _source(tmp_path / "include", '#include "mine.h"\n#include <torch/script.h>\n', "deeper.h")
    source = _source(tmp_path, "#include <mine.h>\n")
    assert abi_of([source]) == "stable"
    assert abi_of([source], [tmp_path / "include"]) == "full"


def test_an_include_in_a_comment_does_not_count(tmp_path: Path) -> None:
    text = "// #include <torch/script.h>\n/*\n#include <torch/script.h>\n*/\n"
    assert abi_of([_source(tmp_path, text)]) == "stable"


@pytest.mark.parametrize("text", ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", "PyMODINIT_FUNC PyInit_mine() {}"])
def test_a_binding_makes_a_python_module(tmp_path: Path, text: str) -> None:
    assert makes_python_module([_source(tmp_path, text)])


def test_operators_alone_make_no_python_module(tmp_path: Path) -> None:
    assert not makes_python_module([_source(tmp_path, "TORCH_LIBRARY(mine, m) {}  // not PYBIND11_MODULE")])
