"""TorchScript in a C++ process that opens the operator library at run time, without Python."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from opwright.checker.models import probe_process
from opwright.checker.steps import Steps

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "host-script"


def why_not(subject: Subject) -> str:
    """What the operator lacks."""
    return probe_process.why_not(subject)


def run(subject: Subject, recorder: Recorder) -> None:
    """Run the samples in a process that opens the library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probe_process.check_torchscript(Steps(subject, recorder), linked=False)
