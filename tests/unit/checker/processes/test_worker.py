"""The kinds of faults that a cell reports for errors that are not results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.processes import worker
from opwright.checker.runtime_table import RUNTIME_NAMES
from opwright.checker.verdict import Cell
from opwright.errors import BridgeError, LoadError, OpwrightError, SpecError
from tests.unit.checker.conftest import RIGHT, SAMPLES, MakeSubject


def raising(error: Exception) -> SimpleNamespace:
    """A runtime that raises."""

    def run(*_: object) -> None:
        raise error

    return SimpleNamespace(why_not=lambda _: "", run=run)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SpecError("the samples yield nothing"), Kind.REFERENCE),
        (BridgeError("the bridge does not build", output="bridge.cpp:3:1: error: no"), Kind.BRIDGE),
        (LoadError("no such library"), Kind.RUNTIME),
        (OpwrightError("something else"), Kind.RUNTIME),
        (ValueError("a bug"), Kind.RUNTIME),
    ],
)
def test_an_error_of_a_cell_is_attributed_to_its_origin(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: Kind
) -> None:
    monkeypatch.setattr(worker, "runtime_module", lambda _: raising(error))
    events: list[dict[str, Any]] = []
    worker.run_cell(make_subject(RIGHT + SAMPLES, quick=True), "raises", frozenset(), events.append)
    (failure,) = Cell.from_json(events[-1]["cell"]).failures
    assert failure.kind is kind
    assert str(error) in failure.got
    if isinstance(error, BridgeError):
        assert failure.detail == "bridge.cpp:3:1: error: no"


@pytest.mark.parametrize("runtime", RUNTIME_NAMES)
def test_no_runtime_applies_to_a_missing_gpu(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    subject = make_subject(RIGHT + SAMPLES, quick=True)
    monkeypatch.setattr(subject, "device", "cuda")
    events: list[dict[str, Any]] = []
    worker.run_cell(subject, runtime, frozenset(), events.append)
    cell = Cell.from_json(events[-1]["cell"])
    assert (cell.status, cell.reason) == ("not applicable", "no GPU that this PyTorch can use")
