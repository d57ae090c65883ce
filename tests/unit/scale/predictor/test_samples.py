"""Samples of a Dataset are split into the model's inputs and the values to collate with its outputs."""

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


def test_plain_values_yield_only_outputs() -> None:
    found = collated([ROW, ROW], ["x"])
    assert found.keys() == {"scores"}
    assert torch.equal(found["scores"], torch.ones(2, 3))


def test_further_elements_of_a_tuple_are_collated_as_pytorch_does() -> None:
    outputs, labels, names = collated([(ROW, 3, "a"), (ROW, 4, "b")], ["x"])
    assert outputs.keys() == {"scores"}
    assert labels.tolist() == [3, 4]
    assert list(names) == ["a", "b"]


def test_further_entries_of_a_dict_are_collated_and_its_inputs_are_omitted() -> None:
    samples = Samples([{"x": ROW, "label": 3}, {"x": ROW, "label": 4}], ["x"])
    assert samples.other_names == ["label"]
    found = samples.collated({"status": ["ok", "ok"]}, OUTPUTS)
    assert list(found) == ["label", "status", "scores"]
    assert found["label"].tolist() == [3, 4]


def test_a_single_entry_of_a_dict_is_the_input() -> None:
    assert Samples([{"picture": ROW}], ["x"]).other_names == []


def test_outputs_of_different_sizes_are_a_list_of_tensors() -> None:
    objects = np.empty(2, dtype=object)
    objects[0] = np.ones((1, 4))
    found = Samples([ROW, ROW], ["x"]).collated({}, {"boxes": objects})["boxes"]
    assert torch.equal(found[0], torch.ones(1, 4, dtype=torch.float64))
    assert found[1] is None


@pytest.mark.parametrize("samples", [[(ROW, 3), ROW], [()]])
def test_samples_of_different_forms_are_rejected(samples: list[Any]) -> None:
    with pytest.raises(MapError, match="some samples of the batch are tuples and some are not, or one is empty"):
        Samples(samples, ["x"])
