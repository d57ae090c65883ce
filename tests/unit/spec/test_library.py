from __future__ import annotations

from pathlib import Path

import pytest
from torch import Tensor

import opwright
from opwright.errors import SpecError
from tests.unit.spec.conftest import raises


def test_a_decorated_function_becomes_an_operator_that_still_runs() -> None:
    library = opwright.Library("mine")

    @library.op
    def twice(x: int) -> int:
        """Twice x."""
        return 2 * x

    assert twice(4) == 8
    assert twice.qualified_name == "mine::twice"
    assert twice.__doc__ == "Twice x."
    assert library.ops == {"twice": twice}
    assert library.schemas() == ["twice(SymInt x) -> SymInt"]


def test_a_schema_marks_mutated_arguments() -> None:
    library = opwright.Library("mine")

    @library.op(mutates=("x",))
    def fill(x: Tensor) -> None:
        x.fill_(1)

    assert fill.schema == "fill(Tensor(a0!) x) -> ()"


def test_sources_are_relative_to_the_file_that_creates_the_library() -> None:
    with pytest.raises(SpecError, match=r"'cpu\.cpp', a source of library 'mine', is missing") as caught:
        opwright.Library("mine", sources=["cpu.cpp"])
    assert str(Path(__file__).parent / "cpu.cpp") in str(caught.value)


def test_a_source_in_another_language_is_rejected() -> None:
    with pytest.raises(SpecError, match=r"'kernel.rs', .* is neither C\+\+ nor CUDA: expected .*\.cpp.*\.cu"):
        opwright.Library("mine", sources=["kernel.rs"])


def test_one_string_is_not_a_list_of_sources() -> None:
    with pytest.raises(SpecError, match=r"sources='cpu.cpp' is one string; write a list: sources=\['cpu.cpp'\]"):
        opwright.Library("mine", sources="cpu.cpp")


@pytest.mark.parametrize("name", ["", "my-ops", "2d", "a.b", "ops ", "größe"])
def test_a_namespace_that_is_not_an_identifier_is_rejected(name: str) -> None:
    with pytest.raises(SpecError, match="is not an identifier"):
        opwright.Library(name)


def test_a_second_operator_with_the_same_name_is_rejected() -> None:
    library = opwright.Library("mine")

    def f(x: int) -> int:
        return x

    library.op(f)
    with pytest.raises(SpecError, match=r"operator mine::f is described twice, first at .*test_library\.py:\d+"):
        library.op(f)


# -- external libraries ----------------------------------------------------------------------------------


def test_an_external_library_may_have_a_namespace_of_pytorch() -> None:
    library = opwright.Library("aten", imports=["torch"])
    assert library.is_external
    assert not opwright.Library("mine").is_external


def test_only_an_external_library_may_have_a_namespace_of_pytorch() -> None:
    with raises(
        "the namespace 'aten' is reserved for PyTorch; choose another one, such as 'my_aten'. To describe operators "
        "that are registered there, pass the module that registers them: imports=[...]"
    ):
        opwright.Library("aten")


def test_an_external_library_cannot_have_sources(tmp_path: Path) -> None:
    (tmp_path / "cpu.cpp").write_text("")
    with pytest.raises(SpecError, match="library 'mine' has both sources, and imports or objects that register"):
        opwright.Library("mine", sources=[str(tmp_path / "cpu.cpp")], objects=["libmine.so"])


def test_an_operator_of_an_external_library_may_have_an_overload() -> None:
    library = opwright.Library("aten", imports=["torch"])

    @library.op(name="sum.dim_IntList")
    def sum_of(self: Tensor, dim: list[int]) -> Tensor:
        return self.mean(dim)

    assert sum_of.qualified_name == "aten::sum.dim_IntList"
    assert sum_of.schema == "sum.dim_IntList(Tensor self, SymInt[] dim) -> Tensor"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a b", "the operator name 'a b' is not an identifier; use letters, digits and underscores"),
        ("a.b.c", "the operator name 'a.b.c' is not an identifier"),
        ("sum.int", "the operator name 'sum.int' has an overload, which only external libraries support"),
    ],
)
def test_an_invalid_operator_name_is_rejected(name: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        opwright.Library("mine").op(name=name)(lambda x: x)
