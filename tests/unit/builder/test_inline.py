from __future__ import annotations

import json
from pathlib import Path

import pytest

from opwright.builder.inline import inline_sources
from opwright.cache.cache import Cache
from opwright.errors import BuildError


def test_strings_become_files_and_equal_strings_equal_files(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = inline_sources(cache, ["#include <opwright/op.h>", "int a;"], "#include <opwright/op.h>\nint b;")
    assert [path.name for path in first] == ["main.cpp", "cuda.cu"]
    assert first[0].read_text() == "#include <opwright/op.h>\nint a;\n"
    assert inline_sources(cache, "#include <opwright/op.h>\nint a;\n") == first[:1]


def test_sources_get_pytorchs_headers_unless_they_use_the_stable_abi(tmp_path: Path) -> None:
    cpp, cuda = inline_sources(Cache(tmp_path), "int a;", "int b;")
    head, _, authors = cpp.read_text().partition("\n")
    assert head == "#include <torch/extension.h>"
    named, _, text = authors.partition("\n")
    assert text == "int a;\n"
    # The file that a debugger shows.
    assert Path(json.loads(named.removeprefix("#line 1 "))).read_text() == text
    (other,) = inline_sources(Cache(tmp_path), "#include <torch/library.h>\nint a;")
    assert other.read_text().startswith("#include <torch/extension.h>\n#line 1 ")
    assert other.read_text().endswith("\n#include <torch/library.h>\nint a;\n")
    (has_it,) = inline_sources(Cache(tmp_path), "#include <torch/extension.h>\nint a;")
    assert has_it.read_text() == "#include <torch/extension.h>\nint a;\n"
    (stable,) = inline_sources(Cache(tmp_path), "#include <torch/csrc/stable/library.h>\nint a;")
    assert "extension.h" not in stable.read_text()
    assert cuda.read_text().startswith("#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n")


def test_headers_can_be_left_to_the_author(tmp_path: Path) -> None:
    (cpp,) = inline_sources(Cache(tmp_path), "int a;", implicit_headers=False)
    assert cpp.read_text() == "int a;\n"


def test_functions_are_bound_with_their_docstrings(tmp_path: Path) -> None:
    (cpp,) = inline_sources(Cache(tmp_path), "int a;", functions={"f": "What f does.", "g": "g"})
    assert 'm.def("f", torch::wrap_pybind_function(f), R"doc(What f does.)doc");' in cpp.read_text()
    (plain,) = inline_sources(Cache(tmp_path), "int a;", functions=["f"], torch_errors=False, gil_not_used=True)
    assert "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m, pybind11::mod_gil_not_used()) {" in plain.read_text()
    assert 'm.def("f", f, R"doc(f)doc");' in plain.read_text()
    (one,) = inline_sources(Cache(tmp_path), "int a;", functions="f")
    assert one.read_text().count("m.def") == 1


def test_nothing_to_build_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="there is no source: cpp_sources and cuda_sources are both empty"):
        inline_sources(Cache(tmp_path), " \n")


def test_functions_of_another_type_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"functions=3: expected names, or a dict of names and their docstrings"):
        inline_sources(Cache(tmp_path), "int a;", functions=3)  # type: ignore[arg-type]
