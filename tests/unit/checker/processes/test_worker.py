"""What a cell says of errors that are not results: whose fault they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.processes import worker
from opwright.checker.verdict import Cell
from opwright.errors import BridgeError, LoadError, OpwrightError, SpecError

if TYPE_CHECKING:
    from tests.unit.checker.conftest import MakeSubject

RIGHT = """
@library.op
def f(x: Tensor) -> Tensor:
    return x + 1

@f.samples
def _(make):
    yield make.randn(4)
"""


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
def test_an_error_of_a_cell_is_blamed_on_what_it_comes_from(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: Kind
) -> None:
    monkeypatch.setattr(worker, "runtime_module", lambda _: raising(error))
    events: list[dict[str, Any]] = []
    worker.run_cell(make_subject(RIGHT, quick=True), "raises", frozenset(), events.append)
    (failure,) = Cell.from_json(events[-1]["cell"]).failures
    assert failure.kind is kind
    assert str(error) in failure.got
    if isinstance(error, BridgeError):
        assert failure.detail == "bridge.cpp:3:1: error: no"
