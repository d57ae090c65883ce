"""The lists in the documents match the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.runtime_table import RUNTIME_NAMES, RUNTIMES
from opwright.cli.main import app
from tests.documentation.pages import ROOT, pages

PAGE = (ROOT / "docs/reference/runtimes.md").read_text(encoding="utf-8")
CHECK = (ROOT / "docs/howto/check.md").read_text(encoding="utf-8")
KINDS = (ROOT / "docs/reference/failure_kinds.md").read_text(encoding="utf-8")
COUNTS = {6: "six", 11: "eleven"}
HOST = ROOT / "src/opwright/host/cpp"
# Folders that are not packages: Python's caches, and the files that CMake finds.
ASIDE = {"__pycache__", "cmake"}


def first_cells(heading: str, page: str = PAGE) -> list[str]:
    """Returns the code names in the first column of the table under a heading of a page."""
    section = page.split(f"{heading}\n")[1].split("\n## ", maxsplit=1)[0]
    rows = re.findall(r"^\| ([^|]*) \|", section, flags=re.MULTILINE)
    return [name for row in rows if not row.startswith("**") for name in re.findall(r"`([^`]+)`", row)]


def test_the_page_on_runtimes_lists_every_runtime_in_order() -> None:
    assert first_cells("# Runtimes") == list(RUNTIME_NAMES)
    assert f"in {COUNTS[len(RUNTIMES)]} ways" in PAGE
    assert f"only the {COUNTS[sum(row.quick for row in RUNTIMES)]} runtimes that compile nothing" in CHECK


def glossary() -> dict[str, str]:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", page.split("|---|---|\n")[1], flags=re.MULTILINE))


def test_the_glossary_explains_each_term_once_in_at_most_two_sentences() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([^|]+?) \|", page.split("|---|---|\n")[1], flags=re.MULTILINE)
    assert {"golden", "runtime", "training form"} <= set(terms)
    assert terms == sorted(set(terms))
    assert {term: text for term, text in glossary().items() if len(re.findall(r"\.(?= |$)", text)) > 2} == {}


def test_every_term_of_the_glossary_is_used() -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "glossary.md"]
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".h", ".cpp"}]
    words = " ".join(path.read_text(encoding="utf-8") for path in (*pages, *sources)).lower().replace("_", " ")
    used = {term for term in (*glossary(), "no such term") if re.search(rf"\b{term}", " ".join(words.split()))}
    assert used == set(glossary())


@pytest.mark.parametrize("kind", Kind)
def test_the_page_on_kinds_of_failures_has_the_row_that_reports_print(kind: Kind) -> None:
    cells = (f"`{kind.value}`", kind.diagnosis.title, kind.diagnosis.cause, kind.diagnosis.fix)
    row = " | ".join(cell.replace("|", r"\|") for cell in cells)
    assert KINDS.count(f"\n| {row} |\n") == 1


def test_the_page_on_kinds_of_failures_has_no_other_rows() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", KINDS, flags=re.MULTILINE)) == sorted(kind.value for kind in Kind)


def test_the_page_on_the_host_lists_every_option_of_its_program() -> None:
    source = (HOST / "program/options.cpp").read_text(encoding="utf-8")
    offered = [name.split(",") for name in re.findall(r"add_(?:option|flag)\(\"([^\"]+)\"", source)]
    page = (ROOT / "docs/reference/host.md").read_text(encoding="utf-8")
    documented = {cell.split()[0] for cell in first_cells("## The program", page) if cell.startswith("-")}
    assert ["--verify"] in offered
    assert {name for names in offered for name in names} - {"bundle"} == documented


def test_the_pages_on_shipping_name_exactly_the_options_of_its_verbs() -> None:
    parameters = [parameter for name in ("ship", "migrate") for parameter in app.commands[name].params]
    options = [set(parameter.opts) for parameter in parameters if parameter.opts[0].startswith("-")]
    of_the_host = set(re.findall(r"--[a-z-]+", (HOST / "program/options.cpp").read_text(encoding="utf-8")))
    howto = ROOT / "docs/howto"
    pages = "".join((howto / name).read_text(encoding="utf-8") for name in ("shipping.md", "migrating.md"))
    documented = set(re.findall(r"(?<![\w-])(?:--[a-z][a-z-]*|-[a-z]\b)", pages))
    assert {"--format"} in options
    assert [names for names in options if not names & {*documented, "--help", "--verbose"}] == []
    of_others = {"--version", "--cuda"}  # of ldd, and of opwright new
    assert documented - set[str]().union(*options) - of_the_host - of_others == set()


def test_the_page_on_the_command_line_lists_every_command_in_order() -> None:
    page = (ROOT / "docs/reference/cli.rst").read_text(encoding="utf-8")
    (listed,) = re.findall(r":commands: (\S+)", page)
    assert listed.split(",") == list(app.commands)


def test_every_package_has_a_row() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    packages = [path for path in (ROOT / "src/opwright").iterdir() if path.is_dir() and path.name not in ASIDE]
    rows = [cell.rstrip("/") for cell in first_cells("## Source packages", page)]
    assert {f"src/opwright/{package.name}" for package in packages} <= set(rows) | {"src/opwright/include"}
    inner = [path for path in HOST.iterdir() if path.is_dir() and path.name not in ASIDE]
    assert {f"host/cpp/{folder.name}" for folder in inner} <= set(rows) | {"host/cpp/include"}
    assert [row for row in rows if not ((ROOT / row).exists() or (ROOT / "src/opwright" / row).exists())] == []


def prose(page: Path) -> str:
    """Returns a page without its code blocks, in which a C++ lambda would look like a link."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, formed as GitHub forms them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Returns the links of a page to a file that does not exist, or to a heading that its file does not have."""
    links = re.findall(r"\]\((?![a-z]+:)([^)#]*)(?:#([^)]+))?\)", prose(page))
    targets = [((page.parent / path) if path else page, anchor) for path, anchor in links]
    return [
        f"{page}: {target}#{anchor}"
        for target, anchor in targets
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target))
    ]


def test_every_link_between_documents_has_a_target() -> None:
    assert ROOT / "README.md" in pages()
    assert [link for page in pages() for link in broken_links(page)] == []


@pytest.mark.parametrize("link", ["missing.md", "page.md#missing", "#missing"])
def test_a_link_without_a_target_is_found(tmp_path: Path, link: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A heading\n[fine](#a-heading), [fine](page.md#a-heading), [broken]({link})\n", encoding="utf-8")
    assert len(broken_links(page)) == 1
