from __future__ import annotations

import pytest
import torch

from opwright.bundle.gpu import require_gpu, whole_float32
from opwright.errors import BundleError


@pytest.mark.parametrize(
    ("built_with", "message"),
    [
        (None, "is not a CUDA build. Install one, or ship the model for the CPU"),
        (
            "13.0",
            "PyTorch finds no GPU. Ship on a machine with a GPU of the kind that the bundle is for, or ship",
        ),
    ],
)
def test_the_message_without_a_gpu_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, built_with: str | None, message: str
) -> None:
    monkeypatch.setattr("torch.version.cuda", built_with)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(BundleError) as refused:
        require_gpu()
    assert str(refused.value).startswith("device='cuda' requires a GPU that PyTorch can use: PyTorch ")
    assert message in str(refused.value)


def test_tf32_is_disabled_inside_and_restored_after_an_error() -> None:
    def allowed() -> list[bool]:
        return [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32]

    def fail() -> None:
        with whole_float32():
            found.append(allowed())
            raise ZeroDivisionError

    found: list[list[bool]] = []
    before = allowed()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert found == [[False, False]]
    assert allowed() == before
