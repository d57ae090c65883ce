"""Graphs that PyTorch builds from models: which calls a graph serves, and whether it contains the operator."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Family
from opwright.loader.kernels import is_composite
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject

# Smaller sizes are constants in graphs.
_FEWEST = 2
_MOST_SIZES = 2


def alike(cases: Sequence[Case]) -> list[list[Case]]:
    """`cases` grouped by graph: those of a group differ only in the numbers and sizes of tensors."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(_key(case), []).append(case)
    return list(groups.values())


def other_sizes(subject: Subject, case: Case) -> list[Case]:
    """Variations of the samples that differ only in size, which a graph built from `case` should serve."""
    alike_but_for_sizes = [
        other
        for other in subject.varied
        if other.family is Family.SIZE
        and _key(other) == _key(case)
        and all(size >= _FEWEST for tensor in derive.tensors(other.arguments) for size in tensor.shape)
    ]
    smallest = sorted(alike_but_for_sizes, key=lambda other: sum(map(Tensor.numel, derive.tensors(other.arguments))))
    return list(itertools.islice((other for other in smallest if not subject.expected(other).refusal), _MOST_SIZES))


def holds(subject: Subject, graph: GraphModule) -> bool:
    """Whether a graph calls the operator, directly or in the form for operators that mutate arguments.

    PyTorch may replace its own operators, and operators composed of them.
    """
    return _is_replaceable(subject) or any(
        subject.overload in (node.target, *pytree.tree_leaves((node.args, node.kwargs)))
        for module in graph.modules()
        if isinstance(module, GraphModule)
        for node in module.graph.nodes
    )


def records(subject: Subject, module: torch.jit.ScriptModule) -> bool:
    """Whether TorchScript's graph of a model calls the operator."""
    graph: Any = module.inlined_graph
    return _is_replaceable(subject) or bool(graph.findAllNodes(subject.op.qualified_name.partition(".")[0]))


def _is_replaceable(subject: Subject) -> bool:
    return subject.is_external and (subject.library.namespace == "aten" or is_composite(subject.op))


def _key(case: Case) -> str:
    def described(leaf: Any) -> str:
        if not isinstance(leaf, Tensor):
            return repr(leaf)
        # Strides determine the address arithmetic, which may be constant in a graph.
        layout = "" if leaf.is_contiguous() else f" {tuple(leaf.shape)} {leaf.stride()}"
        ones = [size < _FEWEST for size in leaf.shape]
        return f"{leaf.dtype} {leaf.device} {ones}{layout}"

    leaves, shape = pytree.tree_flatten(case.arguments)
    return f"{shape} {[described(leaf) for leaf in leaves]}"
