"""Processes of a check initialize PyTorch's math library before they run an operator or a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.checker.processes import first_calls_worker, judge_process, reproduction_worker, worker
from opwright.checker.processes.math_library import initialize_math_library

if TYPE_CHECKING:
    from types import ModuleType


class _Recorded(TorchDispatchMode):
    """Records the names of PyTorch's operators, and the dtypes and sizes of their arguments."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[str, torch.dtype, int]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(args[0], torch.Tensor):
            self.calls.append((function.overloadpacket.__name__, args[0].dtype, args[0].numel()))
        return function(*args, **(kwargs or {}))


class _InitializedError(Exception):
    """The math library was initialized."""


def test_functions_of_both_precisions_run_in_one_thread() -> None:
    with _Recorded() as recorded:
        initialize_math_library()
    for name in ("exp", "sqrt", "tanh", "log", "sin"):
        for dtype in (torch.float32, torch.float64):
            assert (name, dtype, 16) in recorded.calls


@pytest.mark.parametrize("process", [worker, judge_process, first_calls_worker, reproduction_worker])
def test_a_process_initializes_the_library_first(monkeypatch: pytest.MonkeyPatch, process: ModuleType) -> None:
    def initialized() -> None:
        raise _InitializedError

    monkeypatch.setattr(process, "initialize_math_library", initialized, raising=False)
    monkeypatch.setattr("sys.argv", ["no job"])
    with pytest.raises(_InitializedError):
        process.main()
