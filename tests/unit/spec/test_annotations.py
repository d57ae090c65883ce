"""Schemas from annotations without PyTorch, compared with those that PyTorch infers."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.library import infer_schema

from opwright.spec.annotations import Types, arguments_from_text, results_from_text, schema_from_annotations

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES = Types(Tensor, torch.dtype, torch.device)
BASES: list[Any] = [Tensor, int, float, bool, str, torch.dtype, torch.device]


def of(generic: Any, argument: Any) -> Any:
    """`generic[argument]`."""
    return generic[argument]


FORMS: list[Callable[[Any], Any]] = [
    lambda base: base,
    lambda base: base | None,
    lambda base: of(typing.Optional, base),
    lambda base: of(list, base),
    lambda base: of(typing.Sequence, base),
    lambda base: of(Sequence, base),
    lambda base: of(list, base | None),
    lambda base: of(list, base) | None,
    lambda base: of(Sequence, base) | None,
    lambda base: of(tuple, (base, base)),
    lambda base: of(dict, (str, base)),
    lambda base: base | int | None,
]
kinds = st.builds(lambda form, base: form(base), st.sampled_from(FORMS), st.sampled_from(BASES))
defaults = st.one_of(
    st.just(inspect.Parameter.empty), st.none(), st.integers(), st.floats(), st.booleans(), st.text("a,(\"')[]=>\\ ->")
)
results = st.one_of(
    kinds,
    st.none(),
    st.just(inspect.Parameter.empty),
    st.lists(kinds, min_size=1, max_size=3).map(lambda each: of(tuple, tuple(each))),
)


def function(annotated: list[tuple[Any, Any]], result: Any, keyword_only: int) -> Callable[..., Any]:
    """A function with these annotations and defaults, the last of which are keyword-only."""
    parameters = [
        inspect.Parameter(
            f"p{at}",
            inspect.Parameter.KEYWORD_ONLY
            if at >= len(annotated) - keyword_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=annotation,
            default=default,
        )
        for at, (annotation, default) in enumerate(sorted(annotated, key=lambda one: one[1] is not one[1]))
    ]

    def reference(*_args: Any, **_kwargs: Any) -> None: ...

    vars(reference)["__signature__"] = inspect.Signature(parameters, return_annotation=result)
    return reference


def inferred(reference: Callable[..., Any], mutates: Sequence[str]) -> str | None:
    try:
        return infer_schema(reference, mutates_args=tuple(mutates), op_name="f")
    except (ValueError, TypeError, NameError):
        return None


@given(
    annotated=st.lists(st.tuples(kinds, st.just(inspect.Parameter.empty)), max_size=4),
    result=results,
    keyword_only=st.integers(0, 2),
    mutates=st.lists(st.sampled_from(["p0", "p1", "p7"]), unique=True, max_size=2),
)
def test_a_schema_is_the_one_that_pytorch_infers(
    annotated: list[tuple[Any, Any]], result: Any, keyword_only: int, mutates: list[str]
) -> None:
    reference = function(annotated, result, keyword_only)
    schema = schema_from_annotations(reference, "f", mutates, TYPES)
    assert schema in (None, inferred(reference, mutates))


@given(annotation=kinds, default=defaults)
def test_a_default_is_written_as_pytorch_writes_it(annotation: Any, default: Any) -> None:
    reference = function([(annotation, default)], Tensor, 0)
    schema = schema_from_annotations(reference, "f", [], TYPES)
    assert schema in (None, inferred(reference, []))


@given(annotated=st.lists(kinds, max_size=4), result=results, keyword_only=st.integers(0, 2))
def test_a_schema_is_read_as_pytorch_reads_it(annotated: list[Any], result: Any, keyword_only: int) -> None:
    reference = function([(one, inspect.Parameter.empty) for one in annotated], result, keyword_only)
    schema = inferred(reference, [])
    if schema is None:
        return
    parsed = torch._C.parse_schema(schema)
    arguments = arguments_from_text(schema)
    expected = [(one.name, str(one.real_type), one.kwarg_only, False) for one in parsed.arguments]
    assert arguments in (None, expected)
    assert results_from_text(schema) in (None, [str(one.type) for one in parsed.returns])


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ("f() -> ()", []),
        ("f(Tensor(a0!) x) -> ()", [("x", "Tensor", False, True)]),
        ("f(Tensor(a0!)[] x) -> ()", [("x", "List[Tensor]", False, True)]),
        ('f(Tensor x, *, str mode="a, b) -> c", SymInt[]? n=None) -> Tensor', None),
    ],
)
def test_texts_with_marks_and_quotes(schema: str, arguments: list[Any] | None) -> None:
    expected = [
        (one.name, str(one.real_type), one.kwarg_only, one.alias_info is not None)
        for one in torch._C.parse_schema(schema).arguments
    ]
    assert arguments_from_text(schema) == expected
    assert arguments in (None, expected)


def test_most_schemas_need_no_pytorch() -> None:
    def reference(
        x: Tensor,
        weights: Sequence[Tensor],
        bias: Tensor | None,
        size: list[int],
        *,
        mode: str = "a",
        eps: float = 1e-6,
    ) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    schema = schema_from_annotations(reference, "f", ["x"], TYPES)
    expected = 'f(Tensor(a0!) x, Tensor[] weights, Tensor? bias, SymInt[] size, *, str mode="a", float eps=1e-06)'
    assert schema == f"{expected} -> (Tensor, Tensor)"
    assert inferred(reference, ["x"]) == schema
    assert results_from_text(schema) == ["Tensor", "Tensor"]
