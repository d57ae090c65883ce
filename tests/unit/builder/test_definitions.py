from __future__ import annotations

import pytest
from torch import Tensor

import opwright
from opwright.builder.definitions import header_text, source_text


@pytest.fixture
def library() -> opwright.Library:
    library = opwright.Library("mine")

    @library.op
    def f(x: Tensor, mode: str = "nearest") -> Tensor:
        raise NotImplementedError

    @library.op
    def g(x: Tensor) -> Tensor:
        raise NotImplementedError

    return library


def test_every_schema_is_in_the_table_and_is_defined(library: opwright.Library) -> None:
    header, source = header_text(library), source_text(library)
    assert 'opwright::definitions<"mine">' in header
    assert "OPWRIGHT_LIBRARY(mine, m)" in source
    assert '"g(Tensor x) -> Tensor"' in header
    assert 'm.def("g(Tensor x) -> Tensor");' in source


def test_quotes_are_escaped_for_cpp(library: opwright.Library) -> None:
    for text in (header_text(library), source_text(library)):
        assert r'"f(Tensor x, str mode=\"nearest\") -> Tensor"' in text


def test_the_text_says_where_it_comes_from(library: opwright.Library) -> None:
    assert header_text(library).startswith(f"// Written by opwright from {library.root / 'op.py'}: edit that file")
