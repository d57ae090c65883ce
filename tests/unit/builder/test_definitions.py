from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from torch import Tensor  # noqa: TC002  annotations become a schema

import opwright
from opwright.builder.definitions import write_definitions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def library() -> opwright.Library:
    library = opwright.Library("mine")

    @library.op
    def f(x: Tensor, mode: str = 'a"b') -> Tensor:
        raise NotImplementedError

    @library.op
    def g(x: Tensor) -> Tensor:
        raise NotImplementedError

    return library


def test_every_schema_is_in_the_table_and_in_the_library(library: opwright.Library, tmp_path: Path) -> None:
    written = write_definitions(library, tmp_path / "new")
    header, source = written.header.read_text(), written.source.read_text()
    assert 'opwright::definitions<"mine">' in header
    assert "OPWRIGHT_LIBRARY(mine, m)" in source
    for text in (header, source):
        assert '"g(Tensor x) -> Tensor"' in text
    assert 'm.def("g(Tensor x) -> Tensor");' in source


def test_quotes_in_a_default_are_escaped_for_c(library: opwright.Library, tmp_path: Path) -> None:
    source = write_definitions(library, tmp_path).source.read_text()
    assert 'str mode=\\"a\\"b\\"' in source or 'str mode=\\"a\\\\\\"b\\"' in source


def test_files_that_would_not_change_are_left_alone(library: opwright.Library, tmp_path: Path) -> None:
    first = write_definitions(library, tmp_path)
    before = first.header.stat().st_mtime_ns, first.source.stat().st_mtime_ns
    second = write_definitions(library, tmp_path)
    assert (second.header.stat().st_mtime_ns, second.source.stat().st_mtime_ns) == before
