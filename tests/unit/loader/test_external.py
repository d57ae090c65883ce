from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

import opwright
from opwright.errors import LoadError
from opwright.loader.external import has_argument_names, native_objects
from opwright.loader.open import open_library

if TYPE_CHECKING:
    from collections.abc import Callable


def described(reference: Callable[..., object], name: str, *, mutates: tuple[str, ...] = ()) -> opwright.Library:
    library = opwright.Library("aten", imports=["torch"])
    library.op(name=name, mutates=mutates)(reference)
    return library


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    return self + value * tensor1 * tensor2


def sum_of(self: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    return self.mean(dim, keepdim)


def add_in_place(self: Tensor, other: Tensor) -> None:
    self.copy_(self + other)


@pytest.mark.parametrize(
    ("reference", "name", "mutates"),
    [
        # A Scalar may be described as a float. A trailing argument with a default, and a result that is a mutated
        # argument, may be omitted.
        (addcmul, "addcmul", ()),
        (sum_of, "sum.dim_IntList", ()),
        (add_in_place, "add_.Tensor", ("self",)),
    ],
)
def test_an_existing_operator_is_used_unchanged(
    reference: Callable[..., object], name: str, mutates: tuple[str, ...]
) -> None:
    library = described(reference, name, mutates=mutates)
    before = torch._C._dispatch_dump(f"aten::{name}")
    loaded = open_library(library)
    assert loaded.path is None
    assert torch._C._dispatch_dump(f"aten::{name}") == before
    assert native_objects(library) == []
    assert has_argument_names(library.ops[name])


def renamed(x: Tensor, tensor1: Tensor, tensor2: Tensor) -> Tensor:
    return x + tensor1 * tensor2


def too_many(self: Tensor, other: Tensor) -> Tensor:
    return self * other


def other_type(self: Tensor, dim: float) -> Tensor:
    return self * dim


def other_default(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 2) -> Tensor:
    return self + value * tensor1 * tensor2


def too_few(self: Tensor) -> Tensor:
    return self


def other_result(self: Tensor, tensor1: Tensor, tensor2: Tensor) -> int:
    return self.dim() + tensor1.dim() + tensor2.dim()


def view(self: Tensor, size: list[int]) -> Tensor:
    return self.reshape(size)


@pytest.mark.parametrize(
    ("reference", "name", "message"),
    [
        (renamed, "addcmul", "argument 0 is 'x', but the operator's is 'self'"),
        (too_many, "relu", "it accepts 2 arguments, but the operator accepts 1"),
        (other_type, "cumsum", "'dim' is float, but the operator's is int"),
        (other_default, "addcmul", "the default of 'value' is 2.0, but the operator's is 1"),
        (too_few, "addcmul", "the operator requires 'tensor1', which the reference does not accept"),
        (other_result, "addcmul", r"it returns \(int\), but the operator returns \(Tensor\)"),
        (view, "view", "the operator returns views of its arguments, which a check does not support"),
        (add_in_place, "add_.Tensor", r"the operator mutates 'self': add it to mutates=\['self'\]"),
    ],
)
def test_a_reference_that_does_not_match_the_schema_is_rejected(
    reference: Callable[..., object], name: str, message: str
) -> None:
    with pytest.raises(
        LoadError, match=f"the reference of aten::{name} does not match the registered schema: {message}"
    ):
        open_library(described(reference, name))


def test_an_operator_that_is_not_registered_is_rejected_with_similar_names() -> None:
    with pytest.raises(LoadError, match=r"aten::addcmull is not registered\. .*similar name: addcmul"):
        open_library(described(addcmul, "addcmull"))


def test_a_missing_package_is_named() -> None:
    library = opwright.Library("aten", imports=["no_such_package"])
    with pytest.raises(LoadError, match="needs the module 'no_such_package', which cannot be imported"):
        open_library(library)


def test_nothing_is_registered_for_an_external_operator() -> None:
    library = described(addcmul, "addcmul")
    library.ops["addcmul"].fake(lambda *arguments: arguments[0])
    with pytest.raises(LoadError, match="describes a fake kernel for aten::addcmul, which is registered by a package"):
        open_library(library)
