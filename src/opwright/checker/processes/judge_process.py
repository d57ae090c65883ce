"""The process of a judge: starts the processes of a job's cells, and never loads the native code that it judges.

`checker.processes.lane` starts it as `python -m opwright.checker.processes.judge_process JOB`. It writes each event to
standard output as one line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.checker.job import Job
from opwright.checker.processes.math_library import initialize_math_library
from opwright.checker.processes.run_job import run_job
from opwright.checker.recorder import written
from opwright.errors import LoadError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.verdict import Cell


class _Events:
    """A watcher that writes what it receives as events."""

    def __init__(self) -> None:
        # Redirects the output of op.py to standard error.
        self._file = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def write(self, event: dict[str, Any]) -> None:
        self._file.write(written(event))
        self._file.flush()

    def start(self, cells: Sequence[tuple[str, str, str]]) -> None:
        """Do nothing: the process that starts the judge already has the cells."""

    def begin(self, op: str, runtime: str, device: str) -> None:
        self.write({"event": "begin", "op": op, "runtime": runtime, "device": device})

    def case(self, text: str) -> None:
        self.write({"event": "case", "text": text})

    def end(self, cell: Cell) -> None:
        self.write({"event": "end", "cell": cell.to_json()})


def main() -> None:
    """Run the cells of a job."""
    initialize_math_library()
    events = _Events()
    job = Job.read(Path(sys.argv[1]))
    try:
        run_job(job, "worker", job.environment, events, job.python)
    except LoadError as error:
        events.write({"event": "unopened", "message": str(error)})


if __name__ == "__main__":
    main()
