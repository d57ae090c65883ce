"""What a check requests from a process: the cells to run, and their options. Imports no torch."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


_SEEDS = 10**6  # short enough to type again


def new_seed() -> int:
    """A seed for a check for which the user gave none."""
    return secrets.randbelow(_SEEDS)


@dataclass(frozen=True)
class Options:
    """What the user of a check requested.

    Attributes:
        seed: the seed of random inputs.
        quick: fewer variations, and only the runtimes that compile nothing.
        large: also tensors of more than 2**31 bytes, or elements on a GPU, if memory allows.
        alone: PyTorch's operators use no threads of their own.
        fail_fast: stop at the first fault.
        reproduce: complete the lines that reproduce a fault, and run them once.
        tool: the tool of compute-sanitizer that watches the process of the operator; empty for none.
    """

    seed: int = 0
    quick: bool = False
    large: bool = False
    alone: bool = False
    fail_fast: bool = False
    reproduce: bool = True
    tool: str = ""


@dataclass(frozen=True)
class Job:
    """The work of one process.

    Attributes:
        namespace: the library's namespace.
        path: the op.py.
        shared_object: the library's shared object; None if it has no native source.
        cells: the cells to run, as [op, runtime, device].
        options: what the user requested.
        work: a folder for files.
        skip: for each cell, by its index, the steps that ended a process.
        skip_groups: for each cell, by its index, the groups of which several steps ended a process.
        step_limit_s: a step that takes longer is a hang, and ends the process.
        python: the first words of a command line that runs a module.
        environment: variables of the process, in addition to those of its parent.
        socket: the path of the socket through which the process talks to its judge.
        key: the key that signs their messages.
        kernels: the names of the library's CUDA kernels, which a tool of compute-sanitizer watches.
    """

    namespace: str
    path: str
    shared_object: str | None
    cells: list[list[str]]
    options: Options
    work: str
    skip: dict[str, list[str]] = field(default_factory=dict)
    skip_groups: dict[str, list[str]] = field(default_factory=dict)
    step_limit_s: float = 300.0
    python: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    socket: str = ""
    key: str = ""
    kernels: list[str] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the job to a file."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Job:
        """Read a job that `write` wrote."""
        given = json.loads(path.read_text())
        return cls(**{**given, "options": Options(**given["options"])})
