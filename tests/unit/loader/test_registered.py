from __future__ import annotations

import pytest

from opwright.errors import LoadError, SpecError
from opwright.loader.registered import find_registered


def test_operators_are_found_by_name_and_by_pattern() -> None:
    namespace, modules, found = find_registered(["aten::relu", "aten::addcmul*"], [])
    assert (namespace, modules) == ("aten", ["torch"])
    assert {"relu", "addcmul", "addcmul_"} <= set(found)
    assert str(found["relu"]) == "aten::relu(Tensor self) -> Tensor"


def test_operators_of_two_namespaces_are_refused() -> None:
    with pytest.raises(
        SpecError, match="expected operators of one namespace, as in torchvision::nms, and got aten::relu, prims::abs"
    ):
        find_registered(["aten::relu", "prims::abs"], [])


def test_a_name_without_a_namespace_is_refused() -> None:
    with pytest.raises(SpecError, match=r"expected operators of one namespace, .* got relu"):
        find_registered(["relu"], [])


def test_an_operator_that_is_not_registered_is_named_with_its_overloads() -> None:
    with pytest.raises(LoadError, match=r"aten::max_pool is not registered after importing torch\. .*max_pool"):
        find_registered(["aten::max_pool"], [])


def test_a_module_that_is_missing_is_named() -> None:
    with pytest.raises(LoadError, match=r"operators of 'nowhere' needs the module 'nowhere', which cannot be imported"):
        find_registered(["nowhere::f"], [])
