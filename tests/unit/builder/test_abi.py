from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.builder.abi import abi_of, makes_python_module, uses_python

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
def test_headers_of_pytorchs_full_api_select_the_full_abi(tmp_path: Path, header: str) -> None:
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
def test_stable_and_other_headers_select_the_stable_abi(tmp_path: Path, header: str) -> None:
    assert abi_of([_source(tmp_path, f"#include <{header}>\n")]) == "stable"


def test_the_authors_own_headers_are_followed(tmp_path: Path) -> None:
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


def test_operators_without_a_binding_make_no_python_module(tmp_path: Path) -> None:
    assert not makes_python_module([_source(tmp_path, "TORCH_LIBRARY(mine, m) {}  // not PYBIND11_MODULE")])


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef _WIN32\n#include <Python.h>\nPyMODINIT_FUNC PyInit_mine() {}\n#endif\n",
        "#if defined(_WIN32)\nint a;\n#elif defined(_MSC_VER)\nPyMODINIT_FUNC PyInit_mine() {}\n#endif\n",
        "#ifdef _WIN32\n#ifdef WITH_PYTHON\nPyMODINIT_FUNC PyInit_mine() {}\n#endif\n#endif\n",
    ],
)
def test_a_binding_only_for_windows_makes_no_python_module(tmp_path: Path, text: str) -> None:
    assert not makes_python_module([_source(tmp_path, text)])


def test_a_binding_next_to_blocks_for_windows_makes_a_python_module(tmp_path: Path) -> None:
    text = "#ifdef _WIN32\nint a;\n#else\nPyMODINIT_FUNC PyInit_mine() {}\n#endif\n"
    assert makes_python_module([_source(tmp_path, text)])
    text = "#ifdef _WIN32\nint a;\n#endif\n#ifndef NOTHING\nPyMODINIT_FUNC PyInit_mine() {}\n#endif\n"
    assert makes_python_module([_source(tmp_path, text)])


@pytest.mark.parametrize("header", ["Python.h", "torch/extension.h", "torch/python.h", "pybind11/stl.h"])
def test_python_headers_are_found_through_the_authors_own(tmp_path: Path, header: str) -> None:
    _source(tmp_path, f"#include <{header}>\n", "mine.h")
    source = _source(tmp_path, '#include "mine.h"\n')
    assert uses_python([source])
    assert not uses_python([_source(tmp_path, "#include <torch/library.h>\n", "b.cpp")])
