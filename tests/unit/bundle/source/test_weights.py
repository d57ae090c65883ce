from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from opwright.bundle.source.weights import load_weights
from opwright.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weights.pth"


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_state_dict_is_loaded_directly_or_from_a_checkpoint(path: Path, wrapped: bool) -> None:
    model, other = net(), net()
    held = other.state_dict()
    torch.save({"epoch": 3, "state_dict": held} if wrapped else held, path)
    load_weights(model, path)
    assert all(torch.equal(value, held[name]) for name, value in model.state_dict().items())


def test_all_mismatches_are_listed_and_nothing_is_changed(path: Path) -> None:
    model = net()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    held = {**net().state_dict(), "0.weight": torch.ones(3, 4), "2.bias": torch.ones(1)}
    del held["1.bias"]
    torch.save(held, path)
    with pytest.raises(BundleError) as refused:
        load_weights(model, path)
    assert str(refused.value).splitlines() == [
        f"the weights {path} do not match the model:",
        "  1.bias is missing",
        "  2.bias is unknown to the model",
        "  0.weight is float32 (3, 4), but the model has float32 (3, 2)",
    ]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_long_list_is_truncated(path: Path) -> None:
    torch.save({f"layer{at}": torch.ones(1) for at in range(9)}, path)
    with pytest.raises(BundleError, match=r"(?s)0\.weight is missing.*and 8 more$"):
        load_weights(net(), path)


@pytest.mark.parametrize("held", [[torch.ones(1)], torch.ones(1), {}, {1: torch.ones(1)}])
def test_a_file_without_a_state_dict_is_rejected(path: Path, held: object) -> None:
    torch.save(held, path)
    with pytest.raises(
        BundleError, match=r"contains no weights: expected a file from torch\.save\(model\.state_dict\(\), \.\.\.\)"
    ):
        load_weights(net(), path)


def test_a_pickled_module_is_rejected(path: Path) -> None:
    torch.save(net(), path)
    with pytest.raises(BundleError) as refused:
        load_weights(net(), path)
    assert "are rejected" in str(refused.value)
    assert "anything else in such a file could run arbitrary code: save model.state_dict() with torch.save" in str(
        refused.value
    )


def test_a_missing_file_is_reported(path: Path) -> None:
    with pytest.raises(BundleError, match="cannot be read: No such file or directory"):
        load_weights(net(), path)
