from __future__ import annotations

import torch

from opwright.spec.tensor_bytes import bytes_equal


def test_bytes_are_compared_regardless_of_their_values() -> None:
    numbers = torch.tensor([float("nan"), 0.0])
    assert bytes_equal(numbers, numbers.clone())
    assert not bytes_equal(numbers, -numbers)
    assert bytes_equal(torch.ones(2, 2).t(), torch.ones(2, 2))
    assert bytes_equal(torch.ones(()).expand(2, 1), torch.ones(2, 1))
    assert bytes_equal(torch.tensor(True), torch.tensor(True))
    conjugated = torch.tensor([1j]).conj()
    assert bytes_equal(conjugated, conjugated.resolve_conj())
