"""The matrix of a check: the requested cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.runtime_table import RUNTIME_NAMES
from opwright.errors import SpecError
from opwright.spec.select import select_names
from opwright.toolchain.devices import DEVICES, devices_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.spec import Library

# The operator, the runtime and the device of a cell.
CellName = tuple[str, str, str]


def select_cells(
    library: Library, ops: Sequence[str], runtimes: Sequence[str], devices: Sequence[str]
) -> list[CellName]:
    """The cells of a check: the given operators in the given runtimes on the given devices; all by default.

    Raises:
        SpecError: the library has no op.py or no operators, or a name is unknown.
    """
    if not (library.root / "op.py").is_file():
        msg = f"the library {library.namespace!r} has no op.py: describe it in one, which the processes of a check read"
        raise SpecError(msg)
    if not library.ops:
        msg = f"library {library.namespace!r} describes no operators: decorate a function in op.py with @library.op"
        raise SpecError(msg)
    chosen_ops = select_names(ops, list(library.ops), "operator", f"{library.namespace}::")
    chosen_runtimes = select_names(runtimes, RUNTIME_NAMES, "runtime")
    chosen_devices = select_names(devices, DEVICES, "device") if devices else devices_of(library)
    return [(op, runtime, device) for op in chosen_ops for device in chosen_devices for runtime in chosen_runtimes]
