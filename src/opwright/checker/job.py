"""The work that a check assigns to a process: the cells to run, and their options. Does not import torch."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


_SEEDS = 10**6  # short enough to retype


def new_seed() -> int:
    """A random seed, for a check without a given one."""
    return secrets.randbelow(_SEEDS)


@dataclass(frozen=True)
class Options:
    """The options of a check.

    Attributes:
        seed: the seed of random inputs.
        quick: run fewer variations, and only the runtimes that compile nothing.
        large: also check tensors of more than 2**31 bytes, or 2**31 elements on a GPU, if memory allows.
        alone: run PyTorch's operators on a single thread.
        fail_fast: stop at the first fault.
        reproduce: complete the repro of each fault, and run it once.
        tool: the compute-sanitizer tool that the process of the operator runs under; empty for none.
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
        options: the options of the check.
        work: a folder for files.
        skip: for each cell, by its index, the steps that ended a process.
        skip_groups: for each cell, by its index, the groups in which several steps ended a process.
        step_limit_s: a step that takes longer is a hang, and ends the process.
        python: the prefix of a command line that runs a module.
        environment: variables of the process, in addition to those of its parent.
        socket: the path of the socket that connects the process with its judge.
        key: the key that signs their messages.
        kernels: the names of the library's CUDA kernels, which a compute-sanitizer tool checks.
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
