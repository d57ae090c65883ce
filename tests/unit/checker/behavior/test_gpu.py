"""Tests of calls on streams and in CUDA graphs, with a fake GPU that completes work immediately."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.behavior import captured_call
from opwright.checker.behavior.cuda_graph import check_cuda_graph
from opwright.checker.behavior.current_stream import check_current_stream
from opwright.checker.behavior.other_gpu import check_other_gpu
from opwright.checker.cases.memory_contents import MemoryContents
from opwright.checker.gradients.on_gpu import check_gradients_on_gpu
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder, UnusableProcessError
from opwright.checker.verdict import Failure
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opwright.checker.subject import Subject

SQUARED = operator("x: Tensor", "x * x", "make.randn(4, 5)")
MUTATED = """
@library.op(mutates=("x",))
def grown(x: Tensor, by: Tensor) -> None:
    x += by

@grown.samples
def _(make):
    yield make.randn(4, 5), make.randn(5)
"""


class Graphs:
    """Captures calls: a replay calls again or returns the first results, or the capture fails."""

    def __init__(self, *, works: bool = True, error: str = "") -> None:
        self.works = works
        self.error = error

    def captured(self, call: Callable[[], list[Any]]) -> SimpleNamespace:
        if self.error:
            raise captured_call.CaptureError(self.error)
        graph = SimpleNamespace(results=call(), replay=lambda: None)
        if self.works:
            graph.replay = lambda: setattr(graph, "results", call())
        return graph


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Graphs:
    graphs = Graphs()
    for module in ("behavior.cuda_graph", "gradients.on_gpu"):
        monkeypatch.setattr(f"opwright.checker.{module}.CapturedCall", graphs.captured)
    return graphs


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def stream(_: object) -> Iterator[None]:
        yield

    monkeypatch.setattr(torch.cuda, "Stream", lambda: SimpleNamespace(query=lambda: True))
    monkeypatch.setattr(torch.cuda, "stream", stream)
    for name in ("synchronize", "_sleep", "set_sync_debug_mode"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)


def on_gpu(make_subject: MakeSubject, text: str) -> Subject:
    """An operator whose samples are on the CPU but whose device is `cuda`."""
    subject = make_subject(text, quick=True)
    assert subject.samples
    subject.device = "cuda"
    return subject


def ran(check: Callable[[Subject, Recorder], None], subject: Subject) -> tuple[Recorder, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    recorder = Recorder("f", "eager", "cuda", events.append)
    check(subject, recorder)
    return recorder, events


@pytest.mark.parametrize("text", [SQUARED, MUTATED])
@pytest.mark.usefixtures("graphs")
def test_a_correct_call_passes_on_a_stream_and_in_a_graph(make_subject: MakeSubject, text: str) -> None:
    subject = on_gpu(make_subject, text)
    for check in (check_current_stream, check_cuda_graph):
        recorder, events = ran(check, subject)
        assert not recorder.failed
        assert recorder.cell().cases == 1
        compile(events[0]["repro"], "repro", "exec")


def test_a_call_that_reads_before_its_arguments_arrive_is_reported(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryContents, "restore", lambda _: None)
    recorder, events = ran(check_current_stream, on_gpu(make_subject, SQUARED))
    (failure,) = recorder.cell().failures
    assert failure.kind is Kind.STREAM
    assert "elements differ" in failure.got
    assert failure.expected.endswith("as on the default stream")
    assert "torch.cuda._sleep(10**8)" in events[0]["repro"]


def test_a_replay_that_does_not_recompute_is_reported(make_subject: MakeSubject, graphs: Graphs) -> None:
    graphs.works = False
    recorder, events = ran(check_cuda_graph, on_gpu(make_subject, SQUARED))
    (failure,) = recorder.cell().failures
    assert failure.kind is Kind.GRAPH
    assert failure.got.startswith("replayed with other values: ")
    assert "graph.replay()" in events[0]["repro"]


def test_a_failed_capture_ends_the_process(make_subject: MakeSubject, graphs: Graphs) -> None:
    graphs.error = "AcceleratorError: CUDA error: operation not permitted when stream is capturing"
    events: list[dict[str, Any]] = []
    with pytest.raises(UnusableProcessError):
        check_cuda_graph(on_gpu(make_subject, SQUARED), Recorder("f", "eager", "cuda", events.append))
    failure = Failure.from_json(events[-1]["fault"])
    assert (failure.kind, failure.got) == (Kind.GRAPH, graphs.error)
    assert failure.case == "sample 1: captured in a CUDA graph"


def test_an_operator_whose_reference_waits_for_the_gpu_is_not_captured(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch, graphs: Graphs
) -> None:
    graphs.error = "no call is captured"
    subject = on_gpu(make_subject, SQUARED)
    original = subject.op.reference

    def waits(*_: object) -> None:
        msg = "called a synchronizing CUDA operation"
        raise RuntimeError(msg)

    def set_mode(mode: object) -> None:
        subject.op.reference = waits if mode == "error" else original

    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", set_mode)
    recorder, _ = ran(check_cuda_graph, subject)
    assert not recorder.failed
    assert "the reference waits for the GPU (RuntimeError: called a synchronizing" in recorder.cell().reason


@pytest.mark.parametrize("works", [True, False])
def test_gradients_are_compared_on_a_stream_and_in_a_graph(
    make_subject: MakeSubject, graphs: Graphs, *, works: bool
) -> None:
    graphs.works = works
    subject = on_gpu(make_subject, SQUARED)
    recorder, events = ran(lambda given, into: check_gradients_on_gpu(given, into, given.samples[0]), subject)
    assert [failure.kind for failure in recorder.cell().failures] == ([] if works else [Kind.GRAPH])
    for event in events[:2]:
        compile(event["repro"], "repro", "exec")
        assert "x.requires_grad_()" in event["repro"]


def test_the_error_of_a_call_takes_precedence_over_that_of_its_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def graph(_: object) -> Iterator[None]:
        yield
        msg = "CUDA error: operation failed due to a previous error during capture"
        raise RuntimeError(msg)

    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimpleNamespace)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    calls: list[int] = []

    def call() -> list[Any]:
        calls.append(1)
        if len(calls) == 2:
            msg = "CUDA error: operation not permitted when stream is capturing"
            raise RuntimeError(msg)
        return []

    with pytest.raises(captured_call.CaptureError, match="not permitted when stream is capturing"):
        captured_call.CapturedCall(call)
    with pytest.raises(captured_call.CaptureError, match="a previous error during capture"):
        captured_call.CapturedCall(call)


def test_the_lines_of_a_repro_run_and_print_both_results(
    make_subject: MakeSubject,
    graphs: Graphs,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    graphs.works = True
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph", torch.cuda.stream)
    subject = on_gpu(make_subject, SQUARED.replace("(4, 5)", "(3)"))
    events = [
        *ran(check_current_stream, subject)[1],
        *ran(check_cuda_graph, subject)[1],
        *ran(lambda given, into: check_gradients_on_gpu(given, into, given.samples[0]), subject)[1],
    ]
    assert len(events) == 4
    for event in events:
        exec(event["repro"], {})
        printed = capsys.readouterr().out
        assert printed.count("tensor(") == 2
        assert printed.startswith(("on the stream:", "replayed:"))


def test_a_machine_with_one_gpu_reports_that_no_other_was_tried(make_subject: MakeSubject) -> None:
    recorder, events = ran(check_other_gpu, on_gpu(make_subject, SQUARED))
    assert "this machine has one GPU" in recorder.cell().reason
    assert events == []


def test_nothing_runs_on_a_cpu(make_subject: MakeSubject) -> None:
    subject = make_subject(SQUARED, quick=True)
    for check in (check_current_stream, check_cuda_graph, check_other_gpu):
        assert ran(check, subject)[1] == []
