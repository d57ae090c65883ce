from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.builder.plan import plan_library, plan_sources
from opwright.cache.cache import Cache
from opwright.errors import BuildError, SpecError
from opwright.spec import library_at

if TYPE_CHECKING:
    from pathlib import Path

OP = """
import opwright
from torch import Tensor
library = opwright.Library("mine", sources=["a.cpp", "b.cu"])
@library.op
def f(x: Tensor) -> Tensor:
    return x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "op.py").write_text(OP)
    (tmp_path / "a.cpp").write_text("#include <opwright/op.h>\n")
    (tmp_path / "b.cu").write_text("#include <opwright/op.h>\n")
    return tmp_path


def test_the_generated_definitions_come_first_and_every_source_sees_the_table(folder: Path) -> None:
    plan = plan_library(library_at(folder), Cache(folder / "cache"), cuda=True)
    assert [source.name for source in plan.sources] == ["definitions.cpp", "a.cpp", "b.cu"]
    assert plan.forced_include is not None
    assert plan.forced_include.name == "definitions.h"
    assert (plan.abi, plan.product, plan.cuda) == ("stable", "operators", True)


def test_cuda_sources_are_excluded_without_cuda(folder: Path) -> None:
    plan = plan_library(library_at(folder), Cache(folder / "cache"), cuda=False)
    assert [source.name for source in plan.sources] == ["definitions.cpp", "a.cpp"]
    assert not plan.cuda


def test_a_library_without_operators_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"library 'empty' describes no operators: decorate a function"):
        plan_library(opwright.Library("empty"), Cache(tmp_path))


def test_unspecified_options_are_detected_from_the_sources(tmp_path: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text("#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n")
    plan = plan_sources("mine", [source])
    assert (plan.abi, plan.product, plan.cuda) == ("full", "python_module", False)
    explicit = plan_sources("mine", [source], abi="stable", product="operators")
    assert (explicit.abi, explicit.product) == ("stable", "operators")


@pytest.mark.parametrize(
    ("sources", "error"),
    [
        ([], "'mine' has no sources"),
        (["gone.cpp"], r"the source gone\.cpp does not exist"),
        (["a.py"], r"a\.py is neither C\+\+ nor CUDA: expected a name that ends in"),
    ],
)
def test_sources_that_cannot_be_built_are_rejected(sources: list[str], error: str) -> None:
    with pytest.raises(BuildError, match=error):
        plan_sources("mine", sources)


def test_an_unknown_abi_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("")
    with pytest.raises(BuildError, match="abi='limited' is unknown: expected 'stable' or 'full'"):
        plan_sources("mine", [tmp_path / "a.cpp"], abi="limited")
