from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.builder.cache import Cache
from opwright.builder.inline import inline_sources
from opwright.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path


def test_strings_become_files_and_equal_strings_equal_files(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = inline_sources(cache, ["#include <opwright/op.h>", "int a;"], "#include <opwright/op.h>\nint b;")
    assert [path.name for path in first] == ["main.cpp", "cuda.cu"]
    assert first[0].read_text() == "#include <opwright/op.h>\nint a;\n"
    assert inline_sources(cache, "#include <opwright/op.h>\nint a;\n") == first[:1]


def test_sources_without_a_header_of_pytorchs_get_them(tmp_path: Path) -> None:
    cpp, cuda = inline_sources(Cache(tmp_path), "int a;", "int b;")
    assert cpp.read_text() == "#include <torch/extension.h>\n#line 1\nint a;\n"
    assert cuda.read_text().startswith("#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n")


def test_headers_can_be_left_to_the_author(tmp_path: Path) -> None:
    (cpp,) = inline_sources(Cache(tmp_path), "int a;", implicit_headers=False)
    assert cpp.read_text() == "int a;\n"


def test_functions_are_bound_with_their_docstrings(tmp_path: Path) -> None:
    (cpp,) = inline_sources(Cache(tmp_path), "int a;", functions={"f": "What f does.", "g": "g"})
    assert 'm.def("f", torch::wrap_pybind_function(f), R"doc(What f does.)doc");' in cpp.read_text()
    (one,) = inline_sources(Cache(tmp_path), "int a;", functions="f")
    assert one.read_text().count("m.def") == 1


def test_nothing_to_build_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="there is no source: cpp_sources and cuda_sources are both empty"):
        inline_sources(Cache(tmp_path), " \n")
