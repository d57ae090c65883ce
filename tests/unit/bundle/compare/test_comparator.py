from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from opwright.bundle.compare.comparator import Comparator
from opwright.bundle.compare.golden import Golden
from opwright.errors import BundleError

GOLDEN = Golden((torch.ones(2),), (torch.tensor([1.0, 2.0]),), (torch.tensor([1.0, 2.0]),), "sample 0")


def comparator(tolerance: float = 0.1) -> Comparator:
    return Comparator([GOLDEN], tolerance)


def giving(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def test_the_largest_difference_of_a_transform_is_stored_under_its_name() -> None:
    one = comparator()
    one.compare("freeze", lambda _: giving(1, 2))
    one.compare("melt", lambda _: giving(1, 2.1))
    assert one.differences == {"freeze": 0, "melt": pytest.approx(0.05)}


def test_a_transform_that_changes_results_is_rejected_with_the_difference() -> None:
    with pytest.raises(BundleError) as refused:
        comparator().compare("melt", lambda _: giving(1, 2.5))
    assert str(refused.value) == (
        "melt changes the results (sample 0): an element differs by 0.25 of its scale (at most 0.1 allowed). "
        "Nothing was written; use --tolerance to allow a larger difference"
    )


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((1, math.nan), "NaNs, infinities or zeros are at different positions"),
        ((1,), "float32 (1,) instead of float32 (2,)"),
    ],
)
def test_a_difference_that_no_tolerance_covers_is_described(numbers: tuple[float, ...], words: str) -> None:
    with pytest.raises(BundleError) as refused:
        comparator(0.99).compare("melt", lambda _: giving(*numbers), advice="Do not")
    assert str(refused.value) == f"melt changes the results (sample 0): {words}. Do not"


def test_a_transform_after_which_the_model_fails_is_rejected() -> None:
    def fails(_: Tensor) -> Tensor:
        message = "out of order"
        raise RuntimeError(message)

    with pytest.raises(BundleError, match=r"the model fails after melt \(sample 0\): RuntimeError: out of order"):
        comparator().compare("melt", fails)


def test_a_model_that_changes_after_some_calls_is_detected() -> None:
    calls: list[Tensor] = []

    def tired(x: Tensor) -> Tensor:
        calls.append(x)
        return giving(1, 2 if len(calls) < 3 else 3)

    with pytest.raises(BundleError, match="melt changes the results"):
        comparator().compare("melt", tired, runs=3)


def test_each_call_receives_a_copy_of_its_inputs() -> None:
    comparator().compare("melt", lambda x: x.add_(giving(0, 1)), runs=2)
    assert GOLDEN.inputs[0].tolist() == [1, 1]


def test_each_comparison_is_reported_and_a_discarded_one_is_not_stored() -> None:
    announced: list[str] = []
    one = Comparator([GOLDEN], 0.1, "old.pt", on_compare=announced.append)
    one.compare("freeze", lambda _: giving(1, 2))
    one.compare("melt", lambda _: giving(1, 2))
    one.forget("melt")
    assert announced == ["freeze: compared with old.pt", "melt: compared with old.pt"]
    assert list(one.by_output) == ["freeze"]
