from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from opwright.bundle.compile.level import level_settings
from opwright.errors import BundleError


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch 2.11 and 2.12, whose Inductor has no setting for the processor."""
    monkeypatch.setattr(torch._inductor, "config", SimpleNamespace(cpp=SimpleNamespace()))


@pytest.mark.usefixtures("older")
def test_a_release_that_compiles_only_for_this_machine_rejects_a_level() -> None:
    with pytest.raises(BundleError, match=r"compiles packages only for this machine's processor, not for x86-64-v3: "):
        level_settings("x86-64-v3")


@pytest.mark.usefixtures("older")
def test_every_release_compiles_for_this_machine() -> None:
    assert level_settings("native") == {}
