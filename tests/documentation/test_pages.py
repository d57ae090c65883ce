"""Every command and every code block of the documentation runs, and prints what its page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import REAL_THINGS
from tests.documentation.blocks import Block, blocks_of
from tests.documentation.pages import ROOT, pages
from tests.documentation.session import Session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


def can_run(block: Block) -> bool:
    """Return whether this machine has what a block needs."""
    names = filter(None, block.attributes.get("needs", "").split(","))
    return block.use != "skip" and all(REAL_THINGS[name][1]() for name in names)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_runs_from_top_to_bottom(page: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    session = Session(lambda: tmp_path_factory.mktemp(page.stem))
    runs = True
    try:
        for block in blocks_of(page):
            if block.language != "output":  # an output belongs to the block above it
                runs = can_run(block)
            if runs:
                session.run(block)
    finally:
        session.close()
