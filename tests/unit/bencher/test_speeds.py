from __future__ import annotations

import pytest
import torch

from opwright.bencher.speeds import MULTIPLIED, copied_per_second, described_product, multiplied_per_second


def test_the_description_of_a_product_includes_tf32() -> None:
    before = torch.get_float32_matmul_precision()
    try:
        assert described_product(torch.float32) == "float32"
        torch.set_float32_matmul_precision("high")
        assert described_product(torch.float32) == "float32 in TF32"
        assert described_product(torch.bfloat16) == "bfloat16"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.needs("cuda")
def test_the_speeds_of_a_gpu_are_measured() -> None:
    assert copied_per_second() > 0
    for dtype in MULTIPLIED:
        assert multiplied_per_second(dtype) > 0
