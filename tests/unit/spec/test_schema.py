from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from opwright.errors import SpecError
from opwright.spec.schema import parameters_of, results_of, schema_of, schema_type


def every_type(
    x: Tensor,
    maybe: Optional[Tensor],
    several: Sequence[Tensor],
    count: int,
    scale: float = 0.5,
    flag: bool = False,
    mode: str = "linear",
    values: Optional[Sequence[float]] = None,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    raise NotImplementedError


def unannotated(x, y: int) -> Tensor:  # type: ignore[no-untyped-def]  # noqa: ANN001  under test
    raise NotImplementedError


def of_a_dict(x: dict[str, int]) -> Tensor:
    raise NotImplementedError


def test_every_annotation_becomes_its_schema_type() -> None:
    assert schema_of(every_type, "every_type") == (
        "every_type(Tensor x, Tensor? maybe, Tensor[] several, SymInt count, float scale=0.5, bool flag=False, "
        'str mode="linear", float[]? values=None, ScalarType dtype=float32) -> (Tensor, Tensor)'
    )


def test_a_union_with_none_is_optional() -> None:
    def f(x: Tensor | None, v: Sequence[float] | None = None) -> Tensor:
        raise NotImplementedError

    assert schema_of(f, "f") == "f(Tensor? x, float[]? v=None) -> Tensor"


def test_a_missing_annotation_is_an_error_with_file_and_line() -> None:
    with pytest.raises(SpecError, match=r"operator 'unannotated' \(.*test_schema\.py:\d+\) has no schema: Parameter x"):
        schema_of(unannotated, "unannotated")


def test_the_error_for_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(
        SpecError, match=r"Parameter x has unsupported type .*Annotate each parameter .* with Tensor, int"
    ):
        schema_of(of_a_dict, "of_a_dict")


def test_the_error_for_an_unknown_default_lists_the_known_kinds() -> None:
    def f(x: Tensor, sizes: Sequence[int] = (1, 2)) -> Tensor:
        raise NotImplementedError

    with pytest.raises(
        SpecError, match=r"Parameter sizes has an unsupported default .* defaults must be numbers"
    ) as caught:
        schema_of(f, "f")
    assert "GitHub" not in str(caught.value)


def test_parameters_are_read_back_from_a_schema() -> None:
    schema = "f(Tensor(a0!) x, Tensor?[] y, SymInt[]? n=None, *, ScalarType? dtype=None, bool flag=False) -> ()"
    assert [
        (one.name, one.type, one.schema_type, one.keyword_only, one.mutated, one.holds_tensors)
        for one in parameters_of(schema)
    ] == [
        ("x", "Tensor", "Tensor", False, True, True),
        ("y", "List[Optional[Tensor]]", "Tensor?[]", False, False, True),
        ("n", "Optional[List[int]]", "SymInt[]?", False, False, False),
        ("dtype", "Optional[ScalarType]", "ScalarType?", True, False, False),
        ("flag", "bool", "bool", True, False, False),
    ]


@pytest.mark.parametrize(
    ("result", "types"),
    [
        ("()", ()),
        ("Tensor", ("Tensor",)),
        ("Tensor[]", ("List[Tensor]",)),
        ("(Tensor, SymInt, Tensor[])", ("Tensor", "int", "List[Tensor]")),
    ],
)
def test_results_are_read_back_from_a_schema(result: str, types: tuple[str, ...]) -> None:
    assert results_of(f"f(Tensor x) -> {result}") == types


PLAIN_TYPES = st.sampled_from(["Tensor", "int", "float", "bool", "str", "ScalarType", "Device"])
TYPES = st.one_of(
    PLAIN_TYPES,
    PLAIN_TYPES.map("List[{}]".format),
    PLAIN_TYPES.map("Optional[{}]".format),
    PLAIN_TYPES.map("List[Optional[{}]]".format),
    PLAIN_TYPES.map("Optional[List[{}]]".format),
)


@given(st.lists(TYPES, max_size=5))
def test_every_type_is_written_as_pytorch_reads_it(types: list[str]) -> None:
    written = ", ".join(f"{schema_type(one)} x{at}" for at, one in enumerate(types))
    assert [parameter.type for parameter in parameters_of(f"f({written}) -> ()")] == types
