from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opwright.errors import MapError
from opwright.scale.engines.local import LocalEngine
from opwright.scale.results.ledger import Ledger

if TYPE_CHECKING:
    from opwright.scale.work import Work


def engine(work: Work, workers: int | None = None) -> LocalEngine:
    return LocalEngine(Path("bundle"), work, lambda _, __: None, workers=workers)


def test_a_bundle_for_gpus_is_rejected_on_a_machine_without_one(monkeypatch: pytest.MonkeyPatch, work: Work) -> None:
    monkeypatch.setattr("opwright.scale.engines.local.gpus", tuple)
    with pytest.raises(MapError, match="the bundle was made for a GPU, and this machine has none: run the map on"):
        engine(work)


@pytest.mark.parametrize(("asked", "taken"), [(None, ["4", "7"]), (1, ["4"]), (3, ["4", "7", "4"])])
def test_each_gpu_has_a_worker_and_further_workers_share_them(
    monkeypatch: pytest.MonkeyPatch, work: Work, asked: int | None, taken: list[str]
) -> None:
    class FakeRunner:
        restarts = 0

        def __init__(self, _command: object, work: Work, _count: object) -> None:
            used.append(work.limits.gpu)
            assert work.limits.memory_bytes is None

        def run(self, shards: Any) -> list[object]:
            return [None for _ in shards]

        def stop(self) -> None:
            pass

        close = stop

    used: list[str | None] = []
    monkeypatch.setattr("opwright.scale.engines.local.gpus", lambda: ("4", "7"))
    monkeypatch.setattr("opwright.scale.engines.local.ShardRunner", FakeRunner)
    made = engine(work, asked)
    ledger = Ledger(work.job, work.destination)
    assert len(list(made.run([ledger.shard(number) for number in range(3)]))) == 3
    assert used == taken
    assert made.workers == len(taken)
