"""How a check detects faults that calls leave on the GPU; the GPU and the CUDA runtime are fakes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from opwright.checker.cuda_runtime import CudaRuntime
from opwright.checker.gpu_watch import FailedLaunchError, GpuWatch, is_cuda_error
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder, UnusableProcessError
from opwright.checker.verdict import Failure

INVALID = "cudaErrorInvalidConfiguration, invalid configuration argument"
ILLEGAL = "CUDA error: an illegal memory access was encountered"


class Runtime(CudaRuntime):
    """A runtime in which a test can make launches fail."""

    def __init__(self) -> None:
        self.error = ""

    def take_error(self) -> str:
        error, self.error = self.error, ""
        return error


class Gpu:
    """A GPU that reports an error at each use, up to a number of times."""

    def __init__(self) -> None:
        self.errors = 0

    def synchronize(self) -> None:
        if self.errors:
            self.errors -= 1
            raise RuntimeError(ILLEGAL)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", gpu.synchronize)
    return gpu


@pytest.fixture
def runtime() -> Runtime:
    return Runtime()


@pytest.mark.usefixtures("gpu")
def test_a_failed_launch_that_was_not_checked_is_an_error_of_the_call(runtime: Runtime) -> None:
    watch = GpuWatch(runtime)
    with pytest.raises(FailedLaunchError, match=f"never ran: {INVALID}"), watch.watched():
        runtime.error = INVALID
    (fault,) = watch.faults()
    assert (fault.kind, fault.is_final) == (Kind.LAUNCH, False)
    assert INVALID in fault.got
    assert list(watch.faults()) == []


@pytest.mark.usefixtures("gpu")
def test_an_earlier_error_is_not_attributed_to_the_call(runtime: Runtime) -> None:
    watch = GpuWatch(runtime)
    runtime.error = INVALID
    with watch.watched():
        pass
    assert list(watch.faults()) == []


@pytest.mark.usefixtures("gpu")
def test_a_launch_error_that_the_call_reports_is_not_reported_again(runtime: Runtime) -> None:
    watch = GpuWatch(runtime)

    def call() -> None:
        runtime.error = INVALID
        raise ValueError(INVALID)

    with pytest.raises(ValueError, match=INVALID), watch.watched():
        call()
    assert list(watch.faults()) == []
    assert runtime.error == ""


@pytest.mark.parametrize(("times", "is_final"), [(2, True), (1, False)])
def test_an_error_is_final_if_the_gpu_reports_it_again(
    runtime: Runtime, gpu: Gpu, times: int, *, is_final: bool
) -> None:
    gpu.errors = times
    (fault,) = GpuWatch(runtime).faults()
    assert (fault.kind, fault.is_final) == (Kind.GPU_FAULT, is_final)
    assert ILLEGAL in fault.got


def test_an_unused_gpu_is_not_queried(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert list(GpuWatch(runtime).faults()) == []


@pytest.mark.parametrize(
    ("error", "is_cudas"),
    [
        (RuntimeError("CUDA error: invalid argument"), True),
        (RuntimeError("launch failed: cudaErrorInvalidValue"), True),
        (RuntimeError("x must be float32"), False),
        (torch.OutOfMemoryError("CUDA error: out of memory"), False),
    ],
)
def test_cuda_errors_are_distinguished_from_errors_of_an_operator(error: Exception, *, is_cudas: bool) -> None:
    assert is_cuda_error(error) == is_cudas


def recorder(watch: GpuWatch, events: list[dict[str, Any]], **given: Any) -> Recorder:
    return Recorder("mine::f", "eager", "cuda", events.append, watch=watch, **given)


@pytest.mark.usefixtures("gpu")
def test_a_failed_launch_is_a_fault_of_its_step_and_explains_the_others(runtime: Runtime) -> None:
    watch = GpuWatch(runtime)
    cell = recorder(watch, [])
    cell.begin("sample 1", "f(x)")
    with pytest.raises(FailedLaunchError), watch.watched():
        runtime.error = INVALID
    cell.fail(Failure(Kind.RAISES, "sample 1", "f(x)"))
    cell.begin("sample 2", "f(y)")
    cell.fail(Failure(Kind.WRONG_RESULT, "sample 2", "f(y)"))
    first, second = cell.cell().failures
    assert (first.kind, first.case, first.repro) == (Kind.LAUNCH, "sample 1", "f(x)")
    assert second.kind is Kind.WRONG_RESULT


def test_an_invalid_access_ends_the_process_and_is_attributed_to_its_step(runtime: Runtime, gpu: Gpu) -> None:
    events: list[dict[str, Any]] = []
    cell = recorder(GpuWatch(runtime), events, fail_fast=True)
    cell.begin("sample 1", "f(x)")
    gpu.errors = 2
    with pytest.raises(UnusableProcessError):
        cell.begin("sample 2", "f(y)")
    assert [event["event"] for event in events] == ["step", "unusable"]
    fault = Failure.from_json(events[-1]["fault"])
    assert (fault.kind, fault.case, fault.repro) == (Kind.GPU_FAULT, "sample 1", "f(x)")


def test_a_step_can_declare_what_an_invalid_access_in_it_means(runtime: Runtime, gpu: Gpu) -> None:
    events: list[dict[str, Any]] = []
    cell = recorder(GpuWatch(runtime), events)
    cell.begin("sample 1, larger", "f(x)", Kind.INDEX_OVERFLOW)
    gpu.errors = 2
    with pytest.raises(UnusableProcessError):
        cell.settle()
    assert Failure.from_json(events[-1]["fault"]).kind is Kind.INDEX_OVERFLOW
