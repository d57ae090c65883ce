"""What of a sample of a Dataset the model takes, and what is collated beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from opwright import MapError
from opwright.scale.predictor.samples import Samples

OUTPUTS = {"scores": np.ones((2, 3), np.float32)}
ROW = np.zeros(3, np.float32)


def collated(samples: list[Any], inputs: list[str]) -> Any:
    return Samples(samples, inputs).collated({}, OUTPUTS)


def test_values_give_outputs_alone() -> None:
    found = collated([ROW, ROW], ["x"])
    assert found.keys() == {"scores"}
    assert torch.equal(found["scores"], torch.ones(2, 3))


def test_what_else_a_tuple_has_is_collated_as_pytorch_does_it() -> None:
    outputs, labels, names = collated([(ROW, 3, "a"), (ROW, 4, "b")], ["x"])
    assert outputs.keys() == {"scores"}
    assert labels.tolist() == [3, 4]
    assert list(names) == ["a", "b"]


def test_what_else_a_dict_has_is_collated_and_its_inputs_are_left_out() -> None:
    samples = Samples([{"x": ROW, "label": 3}, {"x": ROW, "label": 4}], ["x"])
    assert samples.other_names == ["label"]
    found = samples.collated({"status": ["ok", "ok"]}, OUTPUTS)
    assert list(found) == ["label", "status", "scores"]
    assert found["label"].tolist() == [3, 4]


def test_a_lone_entry_of_a_dict_is_the_input() -> None:
    assert Samples([{"picture": ROW}], ["x"]).other_names == []


def test_outputs_of_different_sizes_are_a_list_of_tensors() -> None:
    objects = np.empty(2, dtype=object)
    objects[0] = np.ones((1, 4))
    found = Samples([ROW, ROW], ["x"]).collated({}, {"boxes": objects})["boxes"]
    assert torch.equal(found[0], torch.ones(1, 4, dtype=torch.float64))
    assert found[1] is None


@pytest.mark.parametrize("samples", [[(ROW, 3), ROW], [()]])
def test_samples_of_two_forms_are_refused(samples: list[Any]) -> None:
    with pytest.raises(MapError, match="some samples of the batch are tuples and some are not, or one is empty"):
        Samples(samples, ["x"])
