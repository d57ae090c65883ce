from __future__ import annotations

import torch

from opwright.bencher.storages import address, storages


def test_each_storage_is_returned_once_and_completely() -> None:
    x = torch.arange(10)
    found = storages({"some": x[2:4], "all": [x.view(2, 5), torch.ones(1).expand(7)], "none": None})
    assert [flat.tolist() for flat in found] == [list(range(10)), [1.0]]
    assert address(found[0]) == address(x)
