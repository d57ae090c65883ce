from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from opwright.errors import MapError
from opwright.scale.engines.ray import RayEngine

if TYPE_CHECKING:
    from opwright.scale.work import Work


class FakeCluster:
    """Replaces the module `ray`, connected to a cluster with these resources."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **resources: float) -> None:
        self.is_shut_down = False
        module = SimpleNamespace(cluster_resources=lambda: resources, shutdown=self._shut_down)
        monkeypatch.setitem(sys.modules, "ray", module)
        monkeypatch.setattr("opwright.scale.engines.ray._connect", lambda *_, **__: True)

    def _shut_down(self) -> None:
        self.is_shut_down = True


def workers(work: Work, asked: int | None = None) -> int:
    return RayEngine(Path("bundle"), work, lambda _, __: None, workers=asked).workers


def test_there_is_a_worker_for_each_gpu(monkeypatch: pytest.MonkeyPatch, work: Work) -> None:
    FakeCluster(monkeypatch, CPU=64.0, GPU=4.0)
    assert workers(work) == 4


def test_a_cluster_without_a_gpu_is_rejected_and_disconnected(monkeypatch: pytest.MonkeyPatch, work: Work) -> None:
    cluster = FakeCluster(monkeypatch, CPU=64.0)
    with pytest.raises(
        MapError, match="the bundle was made for a GPU, and the Ray cluster has none: use a cluster with GPUs"
    ):
        workers(work)
    assert cluster.is_shut_down


def test_a_cluster_may_add_its_gpus_later(monkeypatch: pytest.MonkeyPatch, work: Work) -> None:
    FakeCluster(monkeypatch, CPU=64.0)
    assert workers(work, 8) == 8
