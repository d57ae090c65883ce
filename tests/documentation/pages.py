"""The pages that users and contributors read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def pages() -> list[Path]:
    """Return the Markdown pages of the repository."""
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/*/*.md"))]
