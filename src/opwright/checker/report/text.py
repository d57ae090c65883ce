"""A fault as plain text, for reports that have no colors and no columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opwright.checker.verdict import Failure


def failure_text(failure: Failure) -> str:
    """A fault in several lines: its title, the case, the repro, the actual and expected result, and the fix."""
    diagnosis = failure.kind.diagnosis
    fields = {
        "case": failure.case,
        "repro": failure.repro and f"\n{textwrap.indent(failure.repro, '    ')}",
        "got": failure.got,
        "expected": failure.expected,
        "likely cause": diagnosis.cause,
        "fix": failure.fix,
        "detail": failure.detail,
    }
    lines = [f"{name}: {text}" for name, text in fields.items() if text]
    return "\n".join([f"{diagnosis.title} ({failure.kind.value})", *lines])
