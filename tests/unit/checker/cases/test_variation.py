from __future__ import annotations

import pytest
import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.variation import Variation, generator, replaced, replacing, tensor_at, tensors

X, FIRST, SECOND = torch.ones(2), torch.zeros(3), torch.full((4,), 5.0)


def arguments() -> dict[str, object]:
    return {"x": X, "xs": [FIRST, None, SECOND], "n": 3, "pair": (SECOND, 1.0)}


def test_tensors_are_listed_with_their_paths() -> None:
    found = tensors(arguments())
    assert [path for path, _ in found] == ["x", "xs[0]", "xs[2]", "pair[0]"]
    assert [id(tensor) for _, tensor in found] == [id(X), id(FIRST), id(SECOND), id(SECOND)]


@pytest.mark.parametrize("path", ["x", "xs[0]", "xs[2]", "pair[0]"])
def test_only_the_value_at_the_path_is_replaced(path: str) -> None:
    given = arguments()
    other = torch.full((7,), 9.0)
    changed = replaced(given, path, other)
    assert tensor_at(changed, path) is other
    assert list(changed) == list(given)
    for name, tensor in tensors(given):
        assert tensor_at(given, name) is tensor
        assert name == path or tensor_at(changed, name) is tensor


def test_a_variation_names_the_case_and_the_change() -> None:
    case = Case("sample 1", Family.SAMPLE, {"x": X, "n": 3}, claimed=True, size=("size 1", 2))
    made = replacing("x doubled", Family.EDGE, "x", lambda x: 2 * x).of(case)
    assert (made.name, made.family, made.argument) == ("sample 1, x doubled", Family.EDGE, "x")
    assert (made.claimed, made.size) == (False, None)
    assert made.arguments["x"].tolist() == [2, 2]
    assert made.arguments["n"] == 3
    assert case.arguments["x"].tolist() == [1, 1]


def test_a_change_that_does_not_apply_raises() -> None:
    variation = Variation("y replaced", Family.EDGE, lambda given: replaced(given, "y[3]", tensor_at(given, "y[3]")))
    with pytest.raises(KeyError):
        variation.of(Case("sample 1", Family.SAMPLE, {"x": X}))


def test_random_values_depend_on_the_seed_and_every_word() -> None:
    drawn = [
        torch.rand(4, generator=generator(seed, *words)).tolist()
        for seed, words in ((1, ("x", "y")), (2, ("x", "y")), (1, ("x", "z")), (1, ("x",)), (1, ("y", "x")))
    ]
    assert len({tuple(numbers) for numbers in drawn}) == len(drawn)
    assert torch.rand(4, generator=generator(1, "x", "y")).tolist() == drawn[0]
    assert torch.rand(4, generator=generator(-1, "x")).tolist()
    assert torch.rand(4, generator=generator(2**70, "x")).tolist()
