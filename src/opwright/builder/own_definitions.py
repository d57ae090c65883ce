"""Detects whether sources define the operators of an op.py themselves, so that opwright must omit its definitions."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from opwright.builder.symbols import has_torch_library, may_define_operators
from opwright.errors import BuildError
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from opwright.builder.plan import Definitions

_LONGEST_S = 120.0
# Runs in a separate process, because PyTorch terminates a process that cannot register operators.
_PROGRAM = """
import json, sys
import torch
path, namespace = sys.argv[1:]
torch.ops.load_library(path)
names = [schema.name for schema in torch._C._jit_get_all_schemas() if schema.name.startswith(namespace + "::")]
print("\\n" + json.dumps(names))
"""


def defines_operators(definitions: Definitions, objects: Sequence[Path], link: Callable[[], Path]) -> bool:
    """Whether the author's `objects` define operators that op.py describes.

    Two definitions of a namespace, or of an operator, would terminate the process that loads them.

    Args:
        definitions: the definitions that opwright generated.
        objects: the author's object files.
        link: links them, without the generated definitions, and returns the shared object.

    Raises:
        BuildError: they do not link, or cannot be opened.
    """
    if any(has_torch_library(path, definitions.namespace) for path in objects):
        return True
    # For these, the operators that they define are known only after loading them.
    if not any(may_define_operators(path, definitions.namespace) for path in objects):
        return False
    path = link()
    command = [sys.executable, "-c", _PROGRAM, str(path), definitions.namespace]
    completed = run(command, check=False, timeout_s=_LONGEST_S)
    if completed.exit_code != 0:
        msg = f"{path.name} cannot be opened without the definitions of op.py: {completed.output.strip()[-2000:]}"
        raise BuildError(msg)
    defined = set(json.loads(completed.output.splitlines()[-1]))
    return any(f"{definitions.namespace}::{name}" in defined for name in definitions.operators)
