"""Python handles of operators, such as `torch.ops.mine.scale`, which users keep while the operators are replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from opwright.errors import LoadError
from opwright.loader.kernels import schema_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# The handles of replaced operators by name. An operator that is defined again gets its earlier handle.
_packets: dict[str, OpOverloadPacket[..., Any]] = {}


def hold_handles(names: Iterable[str]) -> None:
    """Remember the handles of the operators `names` (`mine::scale`) before PyTorch removes them."""
    for name in names:
        namespace, _, operator = name.partition(".")[0].partition("::")
        packet = vars(vars(torch.ops).get(namespace, torch.ops)).get(operator)
        if isinstance(packet, OpOverloadPacket):
            _packets[name.partition(".")[0]] = packet


def refresh_handles(names: Iterable[str]) -> None:
    """Update the remembered handles of the operators `names` to the currently registered schemas.

    A handle of an operator that does not exist any more raises LoadError when it is called.
    """
    for name in {name.partition(".")[0] for name in names} & _packets.keys():
        _refresh(name, _packets[name])


def _refresh(name: str, packet: OpOverloadPacket[..., Any]) -> None:
    namespace = getattr(torch.ops, name.partition("::")[0])
    operator = packet.__name__
    function, overloads = torch._C._jit_get_operation(name)
    if function is None:
        vars(namespace).pop(operator, None)
        packet._op = _removed(name)
    else:
        # Dictionaries store the packet under the hash of its function, which also calls the new code.
        if isinstance(packet._op, _Removed) or sorted(packet._overload_names) != sorted(overloads):
            torch.jit._builtins._register_builtin(function, name)
            function.__module__ = packet.__module__
            packet._op, packet._overload_names = function, overloads
        setattr(namespace, operator, packet)
    listed = namespace._dir
    if (operator in listed) != (function is not None):
        (listed.append if function is not None else listed.remove)(operator)
    for overload in [one for one in vars(packet).values() if isinstance(one, OpOverload)]:
        _refresh_overload(name, overload)


def _refresh_overload(name: str, overload: Any) -> None:
    suffix = "" if overload._overloadname == "default" else overload._overloadname
    schema = schema_named(f"{name}.{suffix}" if suffix else name)
    found = torch._C._get_operation_overload(name, suffix) if schema is not None else None
    overload._dispatch_cache.clear()
    if schema is None or found is None:
        overload._op = overload._op_dk = _removed(f"{name}.{suffix}" if suffix else name)
        return
    # Create a new overload, and copy its state into the existing object, which users hold.
    fresh = OpOverload(overload._overloadpacket, found[0], found[1], schema, found[2])
    cached = [key for key in ("_handle", "_namespace", "_opname") if key in vars(overload)]
    kept = {"py_kernels": overload.py_kernels, "python_key_table": overload.python_key_table}
    for key in cached:
        del vars(overload)[key]
    if not isinstance(overload._op, _Removed):
        kept |= {"_op": overload._op, "_op_dk": overload._op_dk}
    vars(overload).update({**vars(fresh), **kept})


class _Removed:
    """The callable of a handle whose operator was removed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__module__ = "torch.ops"

    def __call__(self, *_args: object, **_kwargs: object) -> None:
        msg = (
            f"{self._name} is not registered any more: its library was reloaded from sources that do not define it. "
            "Use an operator that they define, or add it again and reload"
        )
        raise LoadError(msg)


def _removed(name: str) -> Callable[..., Any]:
    return _Removed(name)
