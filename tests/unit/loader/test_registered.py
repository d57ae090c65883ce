from __future__ import annotations

import pytest

from opwright.errors import LoadError, SpecError
from opwright.loader.registered import find_registered


def test_operators_are_found_by_name_and_by_pattern() -> None:
    namespace, modules, found = find_registered(["aten::relu", "aten::addcmul*"], [])
    assert (namespace, modules) == ("aten", ["torch"])
    assert {"relu", "addcmul", "addcmul_"} <= set(found)
    assert str(found["relu"]) == "aten::relu(Tensor self) -> Tensor"


@pytest.mark.parametrize("names", [["aten::relu", "prims::abs"], ["relu"]])
def test_operators_without_a_namespace_or_of_two_are_rejected(names: list[str]) -> None:
    text = f"expected operators of one namespace, as in torchvision::nms, got {', '.join(names)}"
    with pytest.raises(SpecError, match=text):
        find_registered(names, [])


def test_the_error_for_an_unregistered_operator_lists_similar_names() -> None:
    with pytest.raises(LoadError, match=r"aten::max_pool is not registered after importing torch\. .*max_pool"):
        find_registered(["aten::max_pool"], [])


def test_a_missing_module_is_named_with_what_to_do() -> None:
    with pytest.raises(LoadError) as raised:
        find_registered(["nowhere::f"], [])
    message = str(raised.value)
    assert "operators of 'nowhere' needs the module 'nowhere', which cannot be imported: " in message
    assert message.endswith(", add its folder to PYTHONPATH, or name another module")
