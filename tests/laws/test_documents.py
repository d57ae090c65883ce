"""What the documents list is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.runtime_table import RUNTIME_NAMES, RUNTIMES
from opwright.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/runtimes.md").read_text(encoding="utf-8")
COUNTS = {6: "six", 11: "eleven"}
HOST = ROOT / "src/opwright/host/cpp"
# Folders that are no rooms: what Python leaves behind, and what CMake finds.
ASIDE = {"__pycache__", "cmake"}


def first_cells(heading: str, page: str = PAGE) -> list[str]:
    """Returns the names in code in the first column of the table under a heading of a page."""
    section = page.split(f"{heading}\n")[1].split("\n## ", maxsplit=1)[0]
    rows = re.findall(r"^\| ([^|]*) \|", section, flags=re.MULTILINE)
    return [name for row in rows if not row.startswith("**") for name in re.findall(r"`([^`]+)`", row)]


def test_the_page_on_runtimes_lists_every_runtime_in_order() -> None:
    assert first_cells("# Runtimes, and what check looks at") == list(RUNTIME_NAMES)
    assert f"in {COUNTS[len(RUNTIMES)]} ways" in PAGE
    assert f"only the {COUNTS[sum(row.quick for row in RUNTIMES)]} runtimes that compile nothing" in PAGE


def glossary() -> dict[str, str]:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", page.split("|---|---|\n")[1], flags=re.MULTILINE))


def test_the_glossary_explains_each_term_once_in_two_sentences_at_most() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([^|]+?) \|", page.split("|---|---|\n")[1], flags=re.MULTILINE)
    assert {"golden", "runtime", "training form"} <= set(terms)
    assert terms == sorted(set(terms))
    assert {term: text for term, text in glossary().items() if len(re.findall(r"\.(?= |$)", text)) > 2} == {}


def test_every_term_of_the_glossary_is_used() -> None:
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name != "glossary.md"]
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".h", ".cpp"}]
    words = " ".join(path.read_text(encoding="utf-8") for path in (*pages, *sources)).lower().replace("_", " ")
    used = {term for term in (*glossary(), "no such term") if re.search(rf"\b{term}", " ".join(words.split()))}
    assert used == set(glossary())


@pytest.mark.parametrize("kind", Kind)
def test_the_page_on_runtimes_says_once_what_a_kind_of_failure_means(kind: Kind) -> None:
    assert first_cells("## What a failure's kind means").count(kind.value) == 1


def test_the_page_on_runtimes_names_no_kind_that_there_is_not() -> None:
    assert set(first_cells("## What a failure's kind means")) == {kind.value for kind in Kind}


def test_the_page_on_the_host_lists_every_option_of_its_program() -> None:
    source = (HOST / "program/options.cpp").read_text(encoding="utf-8")
    offered = [name.split(",") for name in re.findall(r"add_(?:option|flag)\(\"([^\"]+)\"", source)]
    page = (ROOT / "docs/host.md").read_text(encoding="utf-8")
    told = {cell.split()[0] for cell in first_cells("## The program", page) if cell.startswith("-")}
    assert ["--verify"] in offered
    assert {name for names in offered for name in names} - {"bundle"} == told


def test_the_pages_on_shipping_name_every_option_of_its_verbs_and_no_other() -> None:
    parameters = [parameter for name in ("ship", "migrate") for parameter in app.commands[name].params]
    options = [set(parameter.opts) for parameter in parameters if parameter.opts[0].startswith("-")]
    of_the_host = set(re.findall(r"--[a-z-]+", (HOST / "program/options.cpp").read_text(encoding="utf-8")))
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("shipping.md", "migrating.md"))
    told = set(re.findall(r"(?<![\w-])(?:--[a-z][a-z-]*|-[a-z]\b)", pages))
    assert {"--format"} in options
    assert [names for names in options if not names & {*told, "--help", "--verbose"}] == []
    assert told - set[str]().union(*options) - of_the_host - {"--version"} == set()  # the last one is ldd's


def test_every_room_has_its_row() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = [path for path in (ROOT / "src/opwright").iterdir() if path.is_dir() and path.name not in ASIDE]
    rows = [cell.rstrip("/") for cell in first_cells("## The rooms", page)]
    assert {f"src/opwright/{room.name}" for room in rooms} <= set(rows) | {"src/opwright/include"}
    inner = [path for path in HOST.iterdir() if path.is_dir() and path.name not in ASIDE]
    assert {f"host/cpp/{room.name}" for room in inner} <= set(rows) | {"host/cpp/include"}
    assert [row for row in rows if not ((ROOT / row).exists() or (ROOT / "src/opwright" / row).exists())] == []
