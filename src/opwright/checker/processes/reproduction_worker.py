"""The process that runs the repro of a fault once.

`checker.processes.reproduction` starts it as `python -m opwright.checker.processes.reproduction_worker JOB`; the path
of the job is that of the repro.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import Any

from opwright.cache.cache import Cache
from opwright.checker.job import Job
from opwright.checker.processes.math_library import initialize_math_library
from opwright.checker.processes.remote_judge import can_be_sent
from opwright.checker.processes.worker import job_line
from opwright.spec.difference import first_line


def main() -> None:
    """Run the repro, and send the value of its last line, or the error."""
    initialize_math_library()
    job = Job.read(Path(sys.argv[1]))
    line = job_line(job)
    message: dict[str, Any] = {"error": "", "value": None}
    if "OPWRIGHT_CACHE" in os.environ:  # it may be relative
        os.environ["OPWRIGHT_CACHE"] = str(Cache().root.parent)
    os.chdir(job.work)  # a repro that saves a model must not leave a file in the user's folder
    try:
        tree = ast.parse(Path(job.path).read_text(encoding="utf-8"))
        names: dict[str, Any] = {"__name__": "__main__"}
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, job.path, "exec"), names)  # noqa: S102  reports print these lines to be run
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), job.path, "eval"), names)  # noqa: S307  the same
            message["value"] = value if can_be_sent(value) else None
    except Exception as error:
        message["error"] = first_line(error)
    line.tell(message)


if __name__ == "__main__":
    main()
