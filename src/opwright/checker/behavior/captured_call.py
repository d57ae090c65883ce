"""Captures a call in a CUDA graph, and replays it with other values in the memory of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject

# PyTorch's tag for operators that cannot be captured, since 2.12.
_UNSAFE = "cudagraph_unsafe"


class CaptureError(Exception):
    """A call cannot be captured. PyTorch's allocator and its streams are then in an undefined state."""


class CapturedCall:
    """A call in a CUDA graph.

    Args:
        call: enqueues work on the current stream, and returns its results.

    Attributes:
        results: the results, which each replay computes again.

    Raises:
        CaptureError: the call cannot be captured.
    """

    def __init__(self, call: Callable[[], list[Any]]) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            call()  # loading and allocating in the first call cannot be captured
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        self.results: list[Any] = []
        errors: list[Exception] = []
        try:
            with torch.cuda.graph(self._graph):
                # An earlier error is kept: ending the capture raises another one, which is less specific.
                try:
                    self.results = call()
                except Exception as error:
                    errors.append(error)
        except Exception as error:
            errors.append(error)
        if errors:
            raise CaptureError(first_line(errors[0])) from errors[0]

    def replay(self) -> None:
        """Compute the results for the current contents of the arguments."""
        self._graph.replay()
        torch.cuda.synchronize()


def why_not_captured(subject: Subject, case: Case) -> str:
    """Return why the operator need not be captured: a tag, or a reference that waits; empty if it must be."""
    if _UNSAFE in {tag.name for tag in subject.overload.tags}:
        return f"it has the tag {_UNSAFE}"
    before = torch.cuda.get_sync_debug_mode()
    positional, keywords = subject.op.spread(case.plain())
    torch.cuda.set_sync_debug_mode("error")
    try:
        subject.op.reference(*positional, **keywords)
    except Exception as error:
        return f"the reference waits for the GPU ({first_line(error)})"
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return ""
