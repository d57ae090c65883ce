from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from opwright.errors import SpecError
from opwright.spec import library_at

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
from __future__ import annotations
import opwright
from torch import Tensor
library = opwright.Library("found")

@library.op
def f(x: Tensor) -> Tensor:
    return x
"""


def test_a_folder_and_its_file_are_the_same_library(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(GOOD)
    for given in (tmp_path, str(tmp_path), tmp_path / "op.py"):
        library = library_at(given)
        assert library.root == tmp_path
        assert library.schemas() == ["f(Tensor x) -> Tensor"]


def test_a_change_within_a_second_that_keeps_the_size_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name in ("found", "other"):
        (tmp_path / "op.py").write_text(GOOD.replace("found", name))
        os.utime(tmp_path / "op.py", (1e9, 1e9))
        assert library_at(tmp_path).namespace == name
    assert [path.name for path in tmp_path.iterdir()] == ["op.py"]


def test_a_folder_without_an_op_py_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"does not contain an operator library: expected an op\.py at"):
        library_at(tmp_path)


def test_an_op_py_that_raises_is_an_error_with_its_message(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text("import opwright\n1 / 0\n")
    with pytest.raises(SpecError, match=r"op\.py raises ZeroDivisionError: division by zero"):
        library_at(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "none"), ("import opwright\na = opwright.Library('a')\nb = opwright.Library('b')\n", "'a', 'b'")],
)
def test_an_op_py_must_create_exactly_one_library(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "op.py").write_text(text)
    with pytest.raises(SpecError, match=rf"must create one opwright\.Library, but creates {found}"):
        library_at(tmp_path)
