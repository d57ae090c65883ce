"""Runs `torch.library.opcheck` on the operators of a library, in a separate process."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SECONDS = 300

# Accepts an op.py or its folder, and its shared object if it is built; prints the first objection.
PROGRAM = """
import sys
from pathlib import Path
import torch
from torch.utils import _pytree as pytree
from opwright import BuildError, Make
from opwright.loader.open import open_library
from opwright.spec import library_at

def with_grad(tensor):
    return tensor.detach().clone().requires_grad_() if tensor.is_floating_point() else tensor

try:
    library = open_library(library_at(sys.argv[1]), built=Path(sys.argv[2]) if len(sys.argv) > 2 else None)
except BuildError:
    print("not built")
    sys.exit()
for op in library.library.ops.values():
    overload = getattr(library.ops, op.name).default
    for sample in op.draw(Make()):
        args, kwargs = op.spread(op.bind(sample))
        # PyTorch allows no leaf that requires grad to be mutated.
        with_grads = [] if op.mutates else [pytree.tree_map_only(torch.Tensor, with_grad, args)]
        for given in (args, *with_grads):
            try:
                torch.library.opcheck(overload, tuple(given), kwargs)
            except Exception as error:
                print(f"{type(error).__name__}:", " ".join(str(error).split())[:200])
                sys.exit(1)
"""


@dataclass(frozen=True)
class Ended:
    """The outcome of a process.

    Attributes:
        code: its exit code; negative for a signal, 124 for a timeout.
        text: its standard output, or the time after which it was stopped.
    """

    code: int
    text: str

    @property
    def summary(self) -> str:
        """The outcome in a few words."""
        if self.code < 0:
            return f"the process died of {signal.Signals(-self.code).name}"
        return self.text or ("passed" if self.code == 0 else f"exit code {self.code}")


def opcheck(
    path: Path, environment: Mapping[str, str], shared_object: Path | None = None, seconds: float = SECONDS
) -> Ended:
    """Run `torch.library.opcheck` on every operator of a library, with every sample of its author.

    Floating-point inputs are also passed with `requires_grad`, unless the operator mutates an argument.

    Args:
        path: the folder of an op.py, or the file.
        environment: the environment of the process.
        shared_object: the library's shared object; by default it is built if necessary.
        seconds: the time after which it is stopped.

    Returns:
        The outcome; the exit code is 0 if opcheck has no objections.
    """
    built = [] if shared_object is None else [str(shared_object)]
    return ended([sys.executable, "-c", PROGRAM, str(path), *built], environment, seconds)


def ended(command: Sequence[str], environment: Mapping[str, str], seconds: float = SECONDS) -> Ended:
    """Run a program until it exits, or stop it after the time limit."""
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(124, f"timed out after {seconds:.0f} s")
    return Ended(done.returncode, done.stdout.strip())
