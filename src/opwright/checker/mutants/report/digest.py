"""The contents of the reports of mutants, shared by the terminal and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.report.format import duration

if TYPE_CHECKING:
    from opwright.checker.mutants.score import MutationReport

ADVICE = (
    "Add a sample whose result the change affects. If the change has no observable effect, mark it in the source: "
    "// opwright: equivalent: the reason"
)


def tally(report: MutationReport) -> str:
    """The counts in one sentence."""
    judged = report.count("killed") + report.count("survived")
    if report.score is None:
        parts = ["no mutant was checked"]
    else:
        parts = [f"{report.count('killed')} of {judged} mutants killed ({100 * report.score:.1f} %)"]
        if not report.quick:
            parts.append(f"{sum(result.by_quick for result in report.results)} by the quick check")
    if survived := report.count("survived"):
        parts.append(f"{survived} survived")
    words = {
        "equivalent": "equivalent (same object code)",
        "marked": "marked as equivalent",
        "rejected": "rejected by the compiler",
    }
    counts = ((report.count("equivalent"), words["equivalent"]), (report.count("marked"), words["marked"]))
    parts += [f"{count} {text}" for count, text in (*counts, (report.count("rejected"), words["rejected"])) if count]
    return ", ".join(parts)


def verdict(report: MutationReport) -> str:
    """The verdict in one line, with the options that reproduce it."""
    how = "quick check" if report.quick else "full check"
    facts = [f"{report.namespace}: {tally(report)}", how, duration(report.seconds), f"seed {report.seed}"]
    return " · ".join(facts)
