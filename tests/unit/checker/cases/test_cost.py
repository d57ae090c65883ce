from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.cases import cost
from opwright.checker.cases.cost import is_affordable

if TYPE_CHECKING:
    from opwright.spec import Op
    from tests.unit.conftest import Describe

OPERATOR = "@library.op\ndef f(x: Tensor, n: float) -> Tensor:\n    {}\n".replace("float", "int")


@pytest.fixture
def op(describe: Describe) -> Any:
    def op(body: str) -> Op:
        return describe(OPERATOR.format(body)).ops["f"]

    return op


def call(n: Any) -> dict[str, Any]:
    return {"x": torch.randn(6), "n": n}


def forever() -> str:
    return "while n > 0:\n        n -= 1\n    return x + n"


@pytest.mark.parametrize(
    "body",
    [
        "return torch.zeros(n)",
        "return x.new_ones(n).sum() + x",
        "return torch.eye(n)[0]",
        "x = x[x > 0]\n    return torch.zeros(n) + x.sum()",
        "return torch.zeros(n, int((x > 0).sum()))",
    ],
)
def test_a_call_that_would_allocate_gigabytes_is_not_affordable(op: Any, body: str) -> None:
    assert not is_affordable(op(body), call(2**31))
    assert not is_affordable(op(body), call(2**30))
    assert is_affordable(op(body), call(8))


def test_a_call_that_takes_too_long_is_not_affordable(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_SECONDS", 0.05)
    assert not is_affordable(op(forever()), call(2**62))
    # A reference that catches exceptions ends too.
    caught = "try:\n        while True:\n            n += 1\n    except Exception:\n        return x"
    assert not is_affordable(op(caught), call(2**31))


def test_a_branch_on_numbers_is_taken_to_see_what_it_costs(op: Any) -> None:
    costly = op("return torch.zeros(n) if x.max() > x.min() else x")
    assert not is_affordable(costly, call(2**31))
    assert is_affordable(costly, {"x": torch.ones(6), "n": 2**31})
    assert not is_affordable(op("return x.new_zeros(2, n)[:, : int(x.argmax())].clone()"), call(2**31))
    assert is_affordable(op("if (x.max() < n):\n        raise ValueError\n    return torch.zeros(n)"), call(2**31))
    assert is_affordable(op("return x[x.max() * n + x > 0] + n"), call(2**32))


def test_a_loop_whose_length_depends_on_numbers_is_not_affordable(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_SECONDS", 0.05)
    body = "while n * int(x.numel()) > 0:\n        n -= int(x.max() > x.min())\n    return x"
    assert not is_affordable(op(body), call(2**62))


@pytest.mark.parametrize("n", [0, 64, -64])
def test_small_numbers_are_affordable_without_a_trial(op: Any, n: int) -> None:
    described = op("raise BaseException('called')")
    assert is_affordable(described, call(n))
    with pytest.raises(BaseException, match="called"):
        is_affordable(described, call(n + 1000))


@pytest.mark.parametrize("n", [2**31, -(2**63), float("nan"), float("inf")])
def test_large_numbers_that_cost_nothing_are_affordable(op: Any, n: float) -> None:
    assert is_affordable(op("return x * n"), call(n))


def test_a_call_that_the_reference_rejects_is_affordable_and_leaves_no_log(
    op: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert is_affordable(op("raise ValueError('n')"), call(2**31))
    assert is_affordable(op("return torch.mm(x[None], x[None])"), call(2**31))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not logging.getLogger("torch._subclasses.fake_tensor").disabled


def test_the_reference_is_called_with_no_numbers_and_the_arguments_stay_as_they_are(op: Any) -> None:
    arguments = call(2**31)
    before = arguments["x"].clone()
    assert is_affordable(op("x.add_(n)\n    return x + 1"), arguments)
    assert torch.equal(arguments["x"], before)


def test_the_time_limit_leaves_signal_handlers_and_timers_as_they_were(
    op: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "_SECONDS", 0.05)

    def own(number: int, frame: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGALRM, own)
    timer = signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        for body in ("return x * n", "raise ValueError('n')", "return torch.zeros(n)", forever()):
            is_affordable(op(body), call(2**62))
            assert signal.getsignal(signal.SIGALRM) is own
            assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)


def test_another_thread_sets_no_time_limit(op: Any) -> None:
    described = op("return torch.zeros(n)")
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(is_affordable(described, call(2**31))))
    thread.start()
    thread.join()
    assert found == [False]
