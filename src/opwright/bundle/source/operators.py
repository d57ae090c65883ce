"""The functions that a saved model may call: operators and arithmetic, none of which accesses files or processes."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch._C import _jit_get_all_schemas, _jit_get_schemas_for_operator
from torch._ops import OpOverload

_OPERATOR = re.compile(r"torch\.ops\.(_?[A-Za-z]\w*)\.(_?[A-Za-z]\w*|__[a-z]+__)\.([A-Za-z]\w*)", re.ASCII)
_HIGHER_ORDER = frozenset(
    f"torch.ops.higher_order.{name}"
    for name in (
        *("cond", "while_loop", "map_impl", "scan", "associative_scan", "out_dtype"),
        *("wrap_with_set_grad_enabled", "wrap_with_autocast", "auto_functionalized", "auto_functionalized_v2"),
    )
)
_ARITHMETIC = frozenset(
    (
        *(f"_operator.{name}" for name in ("eq", "ne", "le", "ge", "lt", "gt", "neg", "pos", "abs", "getitem")),
        *(f"_operator.{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")),
        *(f"_operator.{name}" for name in ("and_", "or_", "xor", "not_", "lshift", "rshift")),
        *(f"math.{name}" for name in ("trunc", "floor", "ceil", "sqrt", "pow", "log2")),
        *(f"torch.sym_{name}" for name in ("not", "int", "float", "ite", "max", "min", "sqrt", "sum", "fresh_size")),
        *(f"torch._functorch.predispatch._{name}" for name in ("add_batch_dim", "remove_batch_dim")),
        *(f"torch._functorch.predispatch._vmap_{name}_nesting" for name in ("increment", "decrement")),
        "torch._functorch.predispatch.lazy_load_decompositions",
        *(f"torch._sym_{name}" for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "log2", "exp")),
    )
)

# PyTorch's namespaces and operators for other processes, for profilers and debuggers, or for code that Inductor
# generates, where arguments are not checked.
_OF_PYTORCH = frozenset(
    (
        *("c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "_dtensor", "rpc", "dist", "streams"),
        *("profiler", "debugprims", "debug_mode_ops", "inductor", "static_runtime", "_test", "onnx", "higher_order"),
    )
)
_NAMES = frozenset({"rpc_async", "rpc_sync", "rpc_remote", "PythonOp", "IgnoredPythonOp", "data_ptr", "load_library"})
_REACHES = re.compile(r"file|path|ur[li]\b|folder|directory|host|address|command")


def check_function(target: str) -> None:
    """Check the name of a function that an exported program calls, such as `torch.ops.aten.add.Tensor`.

    Raises:
        ValueError: it is not an operator, or it can access files.
    """
    if target in _ARITHMETIC or target in _HIGHER_ORDER:
        return
    found = _OPERATOR.fullmatch(target)
    if found is None:
        msg = f"it calls {target!r:.100}, which is not an operator"
        raise ValueError(msg)
    namespace, name, overload = found.groups()
    if why := why_not(namespace, name):
        raise ValueError(why)
    # An unregistered name stays unresolved: torch.export.load reports it, and how to name its library.
    resolved = getattr(getattr(getattr(torch.ops, namespace), name, None), overload, None)
    if not (resolved is None or isinstance(resolved, OpOverload)):
        msg = f"it calls {target!r:.100}, which is not an operator"
        raise ValueError(msg)


def why_not(namespace: str, name: str) -> str:
    """Why a saved model must not call the operator; empty if it may."""
    if namespace in _OF_PYTORCH:
        return f"it calls {namespace}::{name}, which is not for models"
    schemas: list[Any] = _jit_get_schemas_for_operator(f"{namespace}::{name}")
    if name in _NAMES or any(map(_reaches_files, schemas)):
        return f"it calls {namespace}::{name}, which can read or write files, or reach other processes"
    return ""


def refused_names() -> frozenset[str]:
    """The names, without namespaces, of all registered operators with a parameter such as a file name."""
    schemas: list[Any] = _jit_get_all_schemas()
    return _NAMES | {schema.name.partition("::")[2] for schema in schemas if _reaches_files(schema)}


def _reaches_files(schema: Any) -> bool:
    return any("str" in str(argument.type) and _REACHES.search(argument.name) for argument in schema.arguments)
