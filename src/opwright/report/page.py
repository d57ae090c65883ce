"""A report as one page that holds all it needs: it can be mailed, kept, and opened without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from opwright.report.format import duration, printable

if TYPE_CHECKING:
    from collections.abc import Mapping


def rendered(
    template: Path,
    *,
    tool: str,
    subject: str,
    outcome: str,
    tally: str,
    facts: Mapping[str, str],
    **values: Any,
) -> str:
    """The page that `template`, which extends `page.html.jinja`, makes: no other file, nothing that is not escaped.

    Args:
        template: the file.
        tool: the command that the report is of.
        subject: what it is about.
        outcome: the verdict in a word.
        tally: the verdict in a sentence.
        facts: what it was made with, by name; what is empty is left out.
        values: what else the template shows.
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
