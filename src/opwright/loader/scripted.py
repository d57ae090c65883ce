"""Rejects TorchScript functions that were compiled for an earlier schema of an operator."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.jit._script import RecursiveScriptModule

from opwright.errors import LoadError
from opwright.loader.kernels import schema_named
from opwright.loader.quiet import is_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

# An attribute of nodes that call an operator with its earlier schema.
_MARK = "opwright_replaced"

# The operators that have had several schemas in this process.
_changed: set[str] = set()
# By scripted function, why it is rejected; None if it is not.
_verdicts: weakref.WeakKeyDictionary[Any, str | None] = weakref.WeakKeyDictionary()
_watched: list[type] = []


def watch_scripted_calls() -> None:
    """Inspect scripted functions from now on when Python calls them."""
    if not _watched:
        kinds: list[Any] = [torch._C.ScriptFunction, torch._C.ScriptMethod]
        for kind in kinds:
            kind.__call__ = _looked_at(kind.__call__)
        _watched.extend(kinds)


def _looked_at(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def look_and_call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if _changed and (why := _verdict(function)) is not None:
            raise LoadError(why)
        return call(function, *args, **kwargs)

    is_seen(look_and_call)
    return look_and_call


def refuse_scripted(changed: Collection[str]) -> None:
    """Reject scripted and traced functions that call the operators `changed`, whose schemas have changed.

    A compiled graph pushes the arguments of the schema that it was compiled for onto the interpreter's stack, but the
    operator would pop the number of arguments in its new schema.
    """
    if not changed:
        return
    _changed.update(changed)
    for graph in _graphs():
        for name in changed:
            for node in graph.findAllNodes(name.partition(".")[0]):
                if _may_call(node, name):
                    node.s_(_MARK, name)
    _verdicts.clear()


def _graphs() -> Iterator[Any]:
    """The graphs of all functions and methods that Python can reach."""
    compiled: Any = torch.jit._state._python_cu
    for function in compiled.get_functions():
        yield from _with_inner(function.graph)
    for module in [one for one in gc.get_objects() if type(one) is RecursiveScriptModule]:
        for name in module._c._method_names():
            yield from _with_inner(module._c._get_method(name).graph)


def _with_inner(graph: Any) -> Iterator[Any]:
    """The graph, and those in its nodes, such as the one that torch.jit.fork starts."""
    yield graph
    for kind in ("prim::fork", "prim::awaitable"):
        for node in graph.findAllNodes(kind):
            yield from _with_inner(node.g("Subgraph"))


def _verdict(function: Any) -> str | None:
    if function not in _verdicts:
        _verdicts[function] = _why_refused(function)
    return _verdicts[function]


def _why_refused(function: Any) -> str | None:
    for graph in _inlined(function.inlined_graph):
        for name in _changed:
            for node in graph.findAllNodes(name.partition(".")[0]):
                if node.hasAttribute(_MARK) or (_may_call(node, name) and not _takes(schema_named(name), node)):
                    return (
                        f"{function.name} was scripted, traced or loaded before {name} got a new schema: "
                        "script, trace or load it again"
                    )
    return None


def _inlined(graph: Any) -> Iterator[Any]:
    yield graph
    for kind in ("prim::fork", "prim::awaitable"):
        for node in graph.findAllNodes(kind):
            inner = node.g("Subgraph").copy()
            torch._C._jit_pass_inline(inner)
            yield from _inlined(inner)


def _may_call(node: Any, name: str) -> bool:
    """Whether a node that calls an overload of the operator `name` may call `name` itself."""
    try:
        called: str = node.schema().partition("(")[0]
    except RuntimeError:  # its operator does not exist any more
        return True
    return called in {name, ""}  # empty if no schema accepts the arguments


def _takes(schema: Any, node: Any) -> bool:
    """Whether a node has the arguments and results of the schema."""
    inputs, outputs = list(node.inputs()), list(node.outputs())
    return (
        schema is not None
        and len(inputs) == len(schema.arguments)
        and len(outputs) == len(schema.returns)
        and all(
            value.type().isSubtypeOf(argument.type) for value, argument in zip(inputs, schema.arguments, strict=True)
        )
    )
