"""Graphs that PyTorch makes of models: which calls one graph serves, and whether it holds the operator."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Family
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject

# Of one element or none, sizes are written into graphs.
_FEWEST = 2
_MOST_SIZES = 2


def alike(cases: Sequence[Case]) -> list[list[Case]]:
    """`cases` in groups of one graph each: they differ in the numbers and sizes of tensors alone."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(_key(case), []).append(case)
    return list(groups.values())


def other_sizes(subject: Subject, case: Case) -> list[Case]:
    """Variations of the samples in sizes alone, for which a graph that is made of `case` should serve."""
    alike_but_for_sizes = [
        other
        for other in subject.varied
        if other.family in (Family.SIZE, Family.TAIL)
        and _key(other) == _key(case)
        and all(size >= _FEWEST for tensor in derive.tensors(other.arguments) for size in tensor.shape)
    ]
    smallest = sorted(alike_but_for_sizes, key=lambda other: sum(map(Tensor.numel, derive.tensors(other.arguments))))
    return list(itertools.islice((other for other in smallest if not subject.expected(other).refusal), _MOST_SIZES))


def holds(subject: Subject, graph: GraphModule) -> bool:
    """Whether a graph calls the operator, by itself or as one that writes to its arguments is called."""
    return any(
        subject.overload in (node.target, *pytree.tree_leaves((node.args, node.kwargs)))
        for module in graph.modules()
        if isinstance(module, GraphModule)
        for node in module.graph.nodes
    )


def records(subject: Subject, module: torch.jit.ScriptModule) -> bool:
    """Whether TorchScript's graph of a model calls the operator."""
    graph: Any = module.inlined_graph
    return bool(graph.findAllNodes(subject.op.qualified_name))


def _key(case: Case) -> str:
    def told(leaf: Any) -> str:
        if not isinstance(leaf, Tensor):
            return repr(leaf)
        # Other strides are other arithmetic on addresses, which a graph may hold as it was.
        layout = "" if leaf.is_contiguous() else f" {tuple(leaf.shape)} {leaf.stride()}"
        ones = [size < _FEWEST for size in leaf.shape]
        return f"{leaf.dtype} {leaf.device} {ones}{layout}"

    leaves, shape = pytree.tree_flatten(case.arguments)
    return f"{shape} {[told(leaf) for leaf in leaves]}"
