"""Every command and every code block of the documentation runs, and prints what its page shows."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REAL_THINGS
from tests.documentation.blocks import Block, blocks_of
from tests.documentation.pages import ROOT, pages
from tests.documentation.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


def can_run(block: Block, *, slow: bool) -> bool:
    """Return whether this machine has what a block needs, and, unless `slow`, whether it is quick."""
    names = filter(None, block.attributes.get("needs", "").split(","))
    chosen = block.use != "skip" and (slow or "slow" not in block.attributes)
    return chosen and all(REAL_THINGS[name][1]() for name in names)


def emptied(base: Path) -> Iterator[Path]:
    """Yield empty folders, the same ones for every page: paths are part of the keys of cached builds."""
    for number in itertools.count():
        folder = base / f"page{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder


# The README always runs.
PAGES = [
    pytest.param(
        page,
        id=str(page.relative_to(ROOT)),
        marks=[] if page == ROOT / "README.md" else [pytest.mark.sample(4)],
    )
    for page in pages()
]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs_from_top_to_bottom(
    page: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> None:
    folders = emptied(tmp_path_factory.getbasetemp())
    session = Session(lambda: next(folders))
    runs = True
    try:
        for block in blocks_of(page):
            if block.language != "output":  # an output belongs to the block above it
                runs = can_run(block, slow=pytestconfig.getoption("--runslow"))
            if runs:
                session.run(block)
    finally:
        session.close()
