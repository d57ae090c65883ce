"""The documentation builds as a site without warnings, and its pages link to each other."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

import opwright
import opwright.cpp_extension
from opwright.cli.main import app

pytestmark = pytest.mark.compiles  # it takes as long as a compiler

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", ".", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@functools.cache
def parsed(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def test_every_link_within_the_site_has_a_target(site: Path) -> None:
    anchors = {page: {tag["id"] for tag in parsed(page).find_all(id=True)} for page in site.rglob("*.html")}
    broken = []
    for page in anchors:
        for link in parsed(page).select("a[href]"):
            target = urlsplit(str(link["href"]))
            if target.scheme or not (target.path or target.fragment):
                continue
            file = (page.parent / unquote(target.path)).resolve() if target.path else page
            if not file.exists() or (target.fragment and unquote(target.fragment) not in anchors.get(file, set())):
                broken.append(f"{page.relative_to(site)}: {link['href']}")
    assert len(anchors) > 30
    assert broken == []


def test_the_start_page_is_the_readme(site: Path) -> None:
    page = parsed(site / "index.html")
    assert page.h1 is not None
    assert page.h1.get_text().startswith("opwright")
    assert (site / "searchindex.js").exists()


def test_the_reference_documents_every_public_name(site: Path) -> None:
    documented = {str(tag["id"]) for tag in parsed(site / "docs/reference/api.html").select("dt[id]")}
    names = {name for name in opwright.__all__ if name != "__version__"}
    # An exception is documented in its module.
    assert {name for name in names if not {f"opwright.{name}", f"opwright.errors.{name}"} & documented} == set()
    ours = {"BuildExtension", "CUDAExtension", "OpExtension", "SyclExtension"}
    assert ours <= set(opwright.cpp_extension.__all__)
    assert {f"opwright.cpp_extension.{name}" for name in ours} <= documented


def test_the_reference_documents_every_option(site: Path) -> None:
    text = parsed(site / "docs/reference/cli.html").get_text()
    shown = [one for command in app.commands.values() for one in command.params if not getattr(one, "hidden", False)]
    options = {option for one in shown for option in one.opts}
    assert "--quick" in options
    assert {option for option in options if option.startswith("-") and option not in text} == {"--help", "-h"} & options
