from __future__ import annotations

import io
import math

import pytest
import torch
from rich.console import Console
from torch import Tensor

from opwright.bundle.compare.comparator import Judge
from opwright.bundle.compare.goldens import Golden
from opwright.bundle.progress import ShipProgress
from opwright.errors import BundleError

GOLDEN = Golden((torch.ones(2),), (torch.tensor([1.0, 2.0]),), "sample 0")


def judge(tolerance: float = 0.1) -> Judge:
    return Judge([GOLDEN], tolerance, ShipProgress())


def giving(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def test_the_largest_difference_of_a_transform_is_kept_under_its_name() -> None:
    one = judge()
    one.examine("freeze", lambda _: giving(1, 2))
    one.examine("melt", lambda _: giving(1, 2.1))
    assert one.differences == {"freeze": 0, "melt": pytest.approx(0.05)}


def test_a_transform_that_changes_results_is_refused_with_the_figure() -> None:
    with pytest.raises(BundleError) as refused:
        judge().examine("melt", lambda _: giving(1, 2.5))
    assert str(refused.value) == (
        "melt changes the results (sample 0): by 0.25 of the largest magnitude, where 0.1 is allowed. "
        "Nothing was written; --tolerance says how much is right for this model"
    )


@pytest.mark.parametrize(
    ("numbers", "words"),
    [((1, math.nan), "NaN, infinities or zeros are in other places"), ((1,), "float32 (1,) instead of float32 (2,)")],
)
def test_what_no_tolerance_covers_is_refused_in_words(numbers: tuple[float, ...], words: str) -> None:
    with pytest.raises(BundleError) as refused:
        judge(0.99).examine("melt", lambda _: giving(*numbers), advice="Do not")
    assert str(refused.value) == f"melt changes the results (sample 0): {words}. Do not"


def test_a_transform_after_which_nothing_runs_is_refused() -> None:
    def fails(_: Tensor) -> Tensor:
        message = "out of order"
        raise RuntimeError(message)

    with pytest.raises(
        BundleError, match=r"after melt the model does not run \(sample 0\): RuntimeError: out of order"
    ):
        judge().examine("melt", fails)


def test_a_model_that_changes_after_some_calls_is_found_out() -> None:
    calls: list[Tensor] = []

    def tired(x: Tensor) -> Tensor:
        calls.append(x)
        return giving(1, 2 if len(calls) < 3 else 3)

    with pytest.raises(BundleError, match="melt changes the results"):
        judge().examine("melt", tired, runs=3)


def test_each_call_gets_its_inputs_anew() -> None:
    judge().examine("melt", lambda x: x.add_(giving(0, 1)), runs=2)
    assert GOLDEN.inputs[0].tolist() == [1, 1]


def test_steps_are_lines_where_that_is_asked_and_nothing_in_a_pipe() -> None:
    for verbose, lines in ((True, ["begin", "melt: compared with eager PyTorch"]), (False, [])):
        shown = io.StringIO()
        with ShipProgress(Console(file=shown), verbose=verbose) as progress:
            one = Judge([GOLDEN], 0.1, progress)
            one.step("begin")
            one.examine("melt", lambda _: giving(1, 2))
        assert shown.getvalue().splitlines() == lines
