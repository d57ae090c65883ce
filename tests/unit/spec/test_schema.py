from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  annotations are evaluated to make a schema
from typing import Optional

import pytest
import torch
from torch import Tensor

from opwright.errors import SpecError
from opwright.spec.schema import schema_of


def every_type(
    x: Tensor,
    maybe: Optional[Tensor],  # noqa: UP045  both spellings must work
    several: Sequence[Tensor],
    count: int,
    scale: float = 0.5,
    flag: bool = False,
    mode: str = "linear",
    values: Optional[Sequence[float]] = None,  # noqa: UP045  both spellings must work
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    raise NotImplementedError


def unannotated(x, y: int) -> Tensor:  # type: ignore[no-untyped-def]  # noqa: ANN001  what is tested
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


def test_a_tensor_that_is_written_to_is_marked() -> None:
    def f(x: Tensor, out: Tensor) -> None:
        raise NotImplementedError

    assert schema_of(f, "f", mutates=("out",)) == "f(Tensor x, Tensor(a1!) out) -> ()"


def test_the_schema_is_one_that_pytorch_parses() -> None:
    parsed = torch._C.parse_schema(f"ns::{schema_of(every_type, 'every_type')}")
    assert [argument.name for argument in parsed.arguments][:3] == ["x", "maybe", "several"]


def test_a_missing_annotation_is_named_with_its_place() -> None:
    with pytest.raises(SpecError, match=r"operator 'unannotated' \(.*test_schema\.py:\d+\) has no schema: Parameter x"):
        schema_of(unannotated, "unannotated")


def test_a_type_without_a_schema_type_says_which_there_are() -> None:
    with pytest.raises(
        SpecError, match=r"Parameter x has unsupported type .*Annotate each parameter .* with Tensor, int"
    ):
        schema_of(of_a_dict, "of_a_dict")
