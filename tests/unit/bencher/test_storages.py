from __future__ import annotations

import torch

from opwright.bencher.storages import address, bytes_equal, storages


def test_each_storage_is_found_once_and_whole() -> None:
    x = torch.arange(10)
    found = storages({"some": x[2:4], "all": [x.view(2, 5), torch.ones(1).expand(7)], "none": None})
    assert [flat.tolist() for flat in found] == [list(range(10)), [1.0]]
    assert address(found[0]) == address(x)


def test_bytes_are_compared_whatever_they_mean() -> None:
    numbers = torch.tensor([float("nan"), 0.0])
    assert bytes_equal(numbers, numbers.clone())
    assert not bytes_equal(numbers, -numbers)
    assert bytes_equal(torch.ones(2, 2).t(), torch.ones(2, 2))
    assert bytes_equal(torch.ones(()).expand(2, 1), torch.ones(2, 1))
    assert bytes_equal(torch.tensor(True), torch.tensor(True))
    conjugated = torch.tensor([1j]).conj()
    assert bytes_equal(conjugated, conjugated.resolve_conj())
