from __future__ import annotations

import torch

from opwright.checker.cases.memory_contents import MemoryContents


def test_contents_are_replaced_in_place_and_restored() -> None:
    x, index = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 1, 2])
    contents = MemoryContents({"x": x, "index": index, "n": 3, "none": None})
    contents.move(1)
    assert x.tolist() == [2.0, 0.5, 1.0]
    assert index.tolist() == [0, 1, 2]  # indices stay if other values can change
    contents.move(2)
    assert x.tolist() == [0.5, 1.0, 0.25]
    x.fill_(float("nan"))  # like a call that mutates it
    contents.restore()
    assert x.tolist() == [1.0, 2.0, 4.0]


def test_integers_move_if_there_are_no_other_tensors() -> None:
    labels = torch.tensor([5, 6, 7])
    contents = MemoryContents({"labels": [labels]})
    contents.move(1)
    assert labels.tolist() == [7, 5, 6]


def test_overlapping_memory_is_unchanged_and_a_leaf_is_replaced() -> None:
    expanded, leaf = torch.ones(1, 3).expand(4, 3), torch.ones(2, requires_grad=True)
    contents = MemoryContents({"expanded": expanded, "leaf": leaf, "nothing": torch.empty(3, device="meta")})
    contents.move(1)
    assert expanded.eq(1).all()
    assert leaf.tolist() == [0.5, 0.5]
    assert leaf.requires_grad
