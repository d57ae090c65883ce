"""Writes repros of calls on a stream, on another GPU or in a CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.cases.code import variable
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.cases.case import Case

_GIVEN = "given = [one.detach() for one in torch.utils._pytree.tree_leaves([{names}]) if isinstance(one, torch.Tensor)]"
# Like `MemoryContents.move`.
_MOVED = (
    "for one in given:",
    "    one.copy_((one.flatten().roll(1) * (0.5 if one.is_floating_point() else 1)).to(one.dtype).view_as(one))",
)


def late_stream_code(lines: Sequence[str], call: str, case: Case) -> str:
    """Lines that make a call on a stream on which its arguments arrive late, and compare it with an earlier one.

    Args:
        lines: the lines before the call.
        call: the expression of the call.
        case: the call.
    """
    return "\n".join(
        [
            *(*lines, _given(case), "numbers = [one.clone() for one in given]"),
            f"wanted = {call}",
            "torch.cuda.synchronize()",
            *_MOVED,
            "torch.cuda.synchronize()",
            "with torch.cuda.stream(torch.cuda.Stream()):",
            "    torch.cuda._sleep(10**8)",
            "    for one, own in zip(given, numbers):",
            "        one.copy_(own)  # the arguments arrive here, on this stream",
            f"    found = {call}",
            "torch.cuda.synchronize()",
            "print('on the stream:', found, 'alone:', wanted)",
        ]
    )


def graph_code(lines: Sequence[str], call: str, case: Case) -> str:
    """Lines that capture a call in a CUDA graph, replay it with other values, and compare it with a plain call.

    Args:
        lines: the lines before the call.
        call: the expression of the call.
        case: the call.
    """
    return "\n".join(
        [
            *(*lines, _given(case), "torch.cuda.synchronize()"),
            "with torch.cuda.stream(torch.cuda.Stream()):",
            f"    {call}  # loading in the first call cannot be captured",
            "torch.cuda.synchronize()",
            "graph = torch.cuda.CUDAGraph()",
            "with torch.cuda.graph(graph):",
            f"    found = {call}",
            *_MOVED,
            "graph.replay()",
            "torch.cuda.synchronize()",
            f"print('replayed:', found, 'called:', {call})",
        ]
    )


def other_gpu_code(lines: Sequence[str], call: str, case: Case) -> str:
    """Lines that make a call on the second GPU while the first one is current."""
    names = _names(case)
    moved = f"torch.utils._pytree.tree_map_only(torch.Tensor, lambda one: one.to('cuda:1'), [{', '.join(names)}])"
    return "\n".join([*lines, f"{', '.join(names)}, = {moved}", call])


def _given(case: Case) -> str:
    return _GIVEN.format(names=", ".join(_names(case)))


def _names(case: Case) -> list[str]:
    """The variables of the arguments that contain tensors."""
    return [variable(name) for name, value in case.arguments.items() if derive.tensors(value)]
