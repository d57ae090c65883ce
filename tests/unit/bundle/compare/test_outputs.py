from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from opwright.bundle.compare.outputs import Flat, flat, names_of
from opwright.errors import BundleError

A, B, C = torch.ones(1), torch.ones(2), torch.ones(3)


class Pair(NamedTuple):
    scores: Tensor
    boxes: Tensor


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (A, ("output",)),
        ((A,), ("output_0",)),
        ((A, B), ("output_0", "output_1")),
        ([A, (B, C)], ("output_0", "output_1", "output_2")),
        ({"scores": A, "boxes": B}, ("scores", "boxes")),
        ({"one": (A, B), "two": {"three": C}}, ("one.0", "one.1", "two.three")),
        (Pair(A, B), ("scores", "boxes")),
        ((A, {"b": B}), ("output_0", "1.b")),
    ],
)
def test_outputs_are_named_by_their_keys_or_numbered(result: object, names: tuple[str, ...]) -> None:
    assert names_of(result) == names
    tensors = flat(result)
    assert [len(tensor) for tensor in tensors] == list(range(1, len(names) + 1))
    assert [len(tensor) for tensor in Flat(lambda: result)()] == list(range(1, len(names) + 1))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (3, "the model returns a int (the result): a bundle's outputs are tensors"),
        ((A, None), "the model returns a NoneType ([1]): a bundle's outputs are tensors"),
        ({"scores": A, "label": "cat"}, "the model returns a str (['label']): a bundle's outputs are tensors"),
        ((), "the model returns nothing"),
    ],
)
def test_a_result_that_is_not_a_tensor_is_rejected_with_its_place(result: object, message: str) -> None:
    with pytest.raises(BundleError) as refused:
        flat(result)
    assert message in str(refused.value)
