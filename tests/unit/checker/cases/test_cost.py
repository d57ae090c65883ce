from __future__ import annotations

import contextlib
import logging
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.cases import cost
from opwright.checker.cases.cost import Costs, SizeLimitAhead, TooExpensiveError
from opwright.checker.cases.samples import redrawn
from opwright.spec import Make

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.spec import Op
    from tests.unit.conftest import Describe

OPERATOR = "@library.op\ndef f(x: Tensor, n: int) -> Tensor:\n    {}\n"


def is_affordable(op: Op, arguments: dict[str, Any]) -> bool:
    return Costs(op).is_affordable(arguments)


@pytest.fixture
def op(describe: Describe) -> Any:
    def op(body: str) -> Op:
        return describe(OPERATOR.format(body)).ops["f"]

    return op


def call(n: Any) -> dict[str, Any]:
    # One element is always positive and one negative, so that `x[x > 0]` is neither empty nor all of `x`.
    x = torch.randn(6)
    x[0], x[1] = 1.0, -1.0
    return {"x": x, "n": n}


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
    monkeypatch.setattr(cost, "_SECONDS_WITHOUT_A_CALL", 0.05)
    assert not is_affordable(op(forever()), call(2**62))
    # A reference that catches exceptions is stopped too.
    caught = "try:\n        while True:\n            n += 1\n    except Exception:\n        return x"
    assert not is_affordable(op(caught), call(2**31))


@pytest.mark.parametrize("branch", ["", "x.max() > x.min() and "])
def test_a_reference_that_calls_operators_is_stopped_at_one_of_them(
    op: Any, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    monkeypatch.setattr(cost, "_SECONDS", 0.05)
    monkeypatch.setattr(cost, "time_limit", lambda seconds: contextlib.nullcontext())
    endless = f"while {branch}n > 0:\n        n -= 1\n        x = x + 1\n    return x"
    assert not is_affordable(op(endless), call(2**62))


def test_a_branch_on_values_is_run_to_find_its_cost(op: Any) -> None:
    costly = op("return torch.zeros(n) if x.max() > x.min() else x")
    assert not is_affordable(costly, call(2**31))
    assert is_affordable(costly, {"x": torch.ones(6), "n": 2**31})
    assert not is_affordable(op("return x.new_zeros(2, n)[:, : int(x.argmax())].clone()"), call(2**31))
    assert is_affordable(op("if (x.max() < n):\n        raise ValueError\n    return torch.zeros(n)"), call(2**31))
    assert is_affordable(op("return x[x.max() * n + x > 0] + n"), call(2**32))
    assert not is_affordable(op("return x[:1].expand(n * int(x.argmax() >= 0)).sum()"), call(2**31))


def test_a_table_of_all_pairs_after_a_branch_on_values_is_not_affordable(op: Any) -> None:
    pairs = op("if not x.isfinite().all():\n        raise ValueError\n    return (x[:, None] - x[None, :]).sum(1)")
    assert not is_affordable(pairs, {"x": torch.randn(2**15), "n": 1})
    assert is_affordable(pairs, {"x": torch.randn(2**10), "n": 1})


def test_a_loop_whose_length_depends_on_values_is_not_affordable(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_large_numbers_that_are_not_sizes_are_affordable(op: Any, n: float) -> None:
    assert is_affordable(op("return x * n"), call(n))


def test_a_call_that_the_reference_rejects_is_affordable_and_leaves_no_log(
    op: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert is_affordable(op("raise ValueError('n')"), call(2**31))
    assert is_affordable(op("return torch.mm(x[None], x[None])"), call(2**31))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not logging.getLogger("torch._subclasses.fake_tensor").disabled


@pytest.mark.parametrize("n", [2**31, 1])
def test_a_complex_view_of_one_real_row_needs_no_fake_base(op: Any, n: int) -> None:
    arguments = {"x": torch.view_as_complex(torch.randn(12).view(6, 2)), "n": n}
    affordable = n == 1
    assert is_affordable(op("return x.new_zeros(n)"), arguments) is affordable
    assert is_affordable(op("return x.new_zeros(n) if x.real.max() < 9 else x"), arguments) is affordable


def test_the_reference_runs_on_fake_tensors_and_leaves_the_arguments_unchanged(op: Any) -> None:
    arguments = call(2**31)
    before = arguments["x"].clone()
    assert is_affordable(op("x.add_(n)\n    return x + 1"), arguments)
    assert torch.equal(arguments["x"], before)


def test_the_time_limit_restores_signal_handlers_and_timers(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_SECONDS_WITHOUT_A_CALL", 0.05)

    def own(number: int, frame: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGVTALRM, own)
    timer = signal.setitimer(signal.ITIMER_VIRTUAL, 1000)
    try:
        for body in ("return x * n", "raise ValueError('n')", "return torch.zeros(n)", forever()):
            is_affordable(op(body), call(2**62))
            assert signal.getsignal(signal.SIGVTALRM) is own
            assert 0 < signal.getitimer(signal.ITIMER_VIRTUAL)[0] < 1001  # the system rounds up
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
        signal.signal(signal.SIGVTALRM, before)


def test_another_thread_sets_no_time_limit(op: Any) -> None:
    described = op("return torch.zeros(n)")
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(is_affordable(described, call(2**31))))
    thread.start()
    thread.join()
    assert found == [False]


def test_calls_with_the_same_shapes_and_options_are_tried_once(op: Any) -> None:
    described = op("tried.append(x)\n    return x * n\n\ntried = []")
    costs = Costs(described)
    tried = described.reference.__globals__["tried"]
    for _ in range(5):
        assert costs.is_affordable({"x": torch.randn(5000), "n": 3})
    assert len(tried) == 1
    assert costs.is_affordable({"x": torch.randn(5000), "n": 4})
    assert costs.is_affordable({"x": torch.randn(5001), "n": 4})
    assert costs.is_affordable({"x": torch.randn(5001).double(), "n": 4})
    assert len(tried) == 4


def test_skipped_calls_are_counted_and_the_time_of_trials_is_limited(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(op("return torch.zeros(n)"))
    assert not costs.is_affordable(call(2**31))
    assert not costs.is_affordable(call(2**31))
    assert costs.is_affordable(call(65))
    assert costs.left_out == 2
    monkeypatch.setattr(cost, "_ALL_SECONDS", 0.0)
    assert costs.is_affordable(call(65))  # already known
    assert not costs.is_affordable(call(66))
    assert costs.left_out == 3


@pytest.mark.parametrize(
    "body",
    ["return x + np.zeros(n, dtype=np.int8).sum()", "return x + float(np.histogram(x.numpy(), bins=n)[0][0])"],
)
def test_a_reference_in_numpy_is_not_called_with_integers_that_may_be_sizes(op: Any, body: str) -> None:
    described = op(f"import numpy as np\n    x = torch.from_numpy(x.numpy())\n    {body}")
    assert is_affordable(described, call(1000))
    assert not is_affordable(described, call(2**40))


@pytest.mark.parametrize(
    "body", ["return x.repeat_interleave(counts)", "return torch.bincount(counts)", "return torch.zeros(counts.max())"]
)
def test_values_of_an_integer_tensor_may_be_sizes(describe: Describe, body: str) -> None:
    described = describe(f"@library.op\ndef f(x: Tensor, counts: Tensor) -> Tensor:\n    {body}\n").ops["f"]
    x = torch.randn(3)
    assert is_affordable(described, {"x": x, "counts": torch.tensor([1, 2, 300])})
    assert not is_affordable(described, {"x": x, "counts": torch.full((3,), 2**31 - 1, dtype=torch.int32)})
    assert is_affordable(described, {"x": x, "counts": torch.empty(0, dtype=torch.int32)})


def test_samples_drawn_with_other_sizes_make_no_large_tensor(describe: Describe) -> None:
    described = describe("""
@library.op
def f(x: Tensor, mask: Tensor) -> Tensor:
    return x @ mask

@f.samples
def _(make):
    n = make.size(6)
    yield make.randn(n), torch.eye(n)
    yield make.randn(n), torch.ones(n, n, dtype=torch.float64).float()
""").ops["f"]
    assert len(redrawn(described, Make(sizes={0: 70}), 2, 2**20)) == 2
    assert redrawn(described, Make(sizes={0: 70001}), 2, 2**20) == []
    (first, _), (again, _) = (redrawn(described, Make(), 2, most) for most in (None, 2**20))
    assert torch.equal(first["x"], again["x"])


@pytest.mark.parametrize(
    ("body", "affordable"),
    [
        ("return torch.stack([one + n for one in x])", False),
        ("return torch.cat(x.split(1))", False),
        ("return torch.cat(x.chunk(2))", True),
        ("return torch.cat(x.split(2**16))", True),
    ],
)
def test_only_splits_into_many_parts_are_not_affordable(op: Any, body: str, affordable: bool) -> None:
    assert is_affordable(op(body), {"x": torch.zeros(2**20), "n": 1}) == affordable


NEW = {
    "stack": lambda: torch.stack([torch.zeros(15)] * 20),
    "cat": lambda: torch.cat([torch.zeros(1, 15)] * 20),
    "randn": lambda: torch.randn(20, 15, generator=torch.Generator(), dtype=torch.float64),
    "randint": lambda: torch.randint(0, 9, (20, 15)),
    "full": lambda: torch.full((20, 15), 2.5),
    "a conversion": lambda: torch.ones(20, 15).half(),
}


@pytest.mark.parametrize("name", NEW)
def test_a_new_tensor_with_few_elements_is_made_without_a_trial(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(cost, "_faked", lambda *_: tried.append(1))
    with SizeLimitAhead(20 * 15):
        assert NEW[name]().shape == (20, 15)
    assert not tried
    monkeypatch.undo()
    with pytest.raises(TooExpensiveError), SizeLimitAhead(20 * 15 - 1):
        NEW[name]()


def test_tensors_on_the_meta_device_are_not_limited() -> None:
    with SizeLimitAhead(2**20):
        assert torch.empty(2**40, device="meta").numel() == 2**40


def test_a_tensor_is_not_split_into_too_many() -> None:
    with SizeLimitAhead(2**20):
        assert len(torch.zeros(2**17, 1).unbind()) == 2**17
        with pytest.raises(TooExpensiveError):
            torch.zeros(2**17 + 1, 1).unbind()


@pytest.mark.parametrize("n", [10, 11])
@pytest.mark.parametrize(
    "make",
    [lambda n: torch.ones(n, 1) + torch.ones(n), lambda n: torch.ones(n, 1).expand(n, n)],
    ids=["pointwise", "view"],
)
def test_results_that_the_arguments_bound_are_limited_too(make: Callable[[int], torch.Tensor], n: int) -> None:
    limit = pytest.raises(TooExpensiveError) if n > 10 else contextlib.nullcontext()
    with limit, SizeLimitAhead(100):
        assert make(n).shape == (n, n)
