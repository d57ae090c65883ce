"""A report as one self-contained HTML page, which opens without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from opwright.report.format import duration, printable

if TYPE_CHECKING:
    from collections.abc import Mapping


def render_page(
    template: Path,
    *,
    tool: str,
    subject: str,
    outcome: str,
    tally: str,
    facts: Mapping[str, str],
    **values: Any,
) -> str:
    """Render `template`, which extends `page.html.jinja`, into one self-contained page; all values are escaped.

    Args:
        template: the template file.
        tool: the command that created the report.
        subject: the subject of the report.
        outcome: the verdict in one word.
        tally: the verdict in one sentence.
        facts: facts about the machine and the run, by name; empty ones are omitted.
        values: further values for the template.
    """
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FileSystemLoader([template.parent, Path(__file__).parent]),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["duration"] = duration
    made = environment.get_template(template.name).render(
        tool=tool, subject=subject, outcome=outcome, tally=tally, facts=facts, **values
    )
    return printable(made)
