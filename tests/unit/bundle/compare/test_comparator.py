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


def test_the_largest_difference_of_a_transform_is_kept_under_its_name() -> None:
    one = comparator()
    one.compare("freeze", lambda _: giving(1, 2))
    one.compare("melt", lambda _: giving(1, 2.1))
    assert one.differences == {"freeze": 0, "melt": pytest.approx(0.05)}


def test_a_transform_that_changes_results_is_refused_with_the_figure() -> None:
    with pytest.raises(BundleError) as refused:
        comparator().compare("melt", lambda _: giving(1, 2.5))
    assert str(refused.value) == (
        "melt changes the results (sample 0): an element differs by 0.25 of its scale, where 0.1 is allowed. "
        "Nothing was written; use --tolerance to allow what is right for this model"
    )


@pytest.mark.parametrize(
    ("numbers", "words"),
    [((1, math.nan), "NaN, infinities or zeros are in other places"), ((1,), "float32 (1,) instead of float32 (2,)")],
)
def test_what_no_tolerance_covers_is_refused_in_words(numbers: tuple[float, ...], words: str) -> None:
    with pytest.raises(BundleError) as refused:
        comparator(0.99).compare("melt", lambda _: giving(*numbers), advice="Do not")
    assert str(refused.value) == f"melt changes the results (sample 0): {words}. Do not"


def test_a_transform_after_which_nothing_runs_is_refused() -> None:
    def fails(_: Tensor) -> Tensor:
        message = "out of order"
        raise RuntimeError(message)

    with pytest.raises(
        BundleError, match=r"after melt the model does not run \(sample 0\): RuntimeError: out of order"
    ):
        comparator().compare("melt", fails)


def test_a_model_that_changes_after_some_calls_is_noticed() -> None:
    calls: list[Tensor] = []

    def tired(x: Tensor) -> Tensor:
        calls.append(x)
        return giving(1, 2 if len(calls) < 3 else 3)

    with pytest.raises(BundleError, match="melt changes the results"):
        comparator().compare("melt", tired, runs=3)


def test_each_call_gets_a_copy_of_its_inputs() -> None:
    comparator().compare("melt", lambda x: x.add_(giving(0, 1)), runs=2)
    assert GOLDEN.inputs[0].tolist() == [1, 1]


def test_each_comparison_is_announced_and_one_that_is_forgotten_is_not_kept() -> None:
    announced: list[str] = []
    one = Comparator([GOLDEN], 0.1, "old.pt", on_compare=announced.append)
    one.compare("freeze", lambda _: giving(1, 2))
    one.compare("melt", lambda _: giving(1, 2))
    one.forget("melt")
    assert announced == ["freeze: compared with old.pt", "melt: compared with old.pt"]
    assert list(one.by_output) == ["freeze"]
