"""How Sphinx builds the pages of the repository as a site; `make docs` runs it with the repository as source folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

from opwright import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

project = "opwright"
author = "the opwright authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "sphinx_copybutton"]
root_doc = "README"
include_patterns = ["*.md", "docs/**", "examples/*/README.md"]
exclude_patterns = [".*", "build", "dist", "docs/images"]
html_theme = "furo"
html_title = f"opwright {version}"
html_copy_source = False
smartquotes = False  # it would turn the hyphens of options into dashes
html_static_path = ["site.css"]
html_css_files = ["site.css"]
# The colours and fonts of the HTML reports (src/opwright/report/page.html.jinja).
html_theme_options = {
    "light_css_variables": {
        "color-background-primary": "#fff",
        "color-background-secondary": "#f6f7f9",
        "color-background-border": "#d5dae1",
        "color-foreground-primary": "#1a1f26",
        "color-foreground-secondary": "#515b68",
        "color-brand-primary": "#1555b0",
        "color-brand-content": "#1555b0",
        "color-brand-visited": "#1555b0",
        "color-code-background": "#f1f3f6",
        "font-stack": 'system-ui, "Liberation Sans", "DejaVu Sans", sans-serif',
        "font-stack--monospace": 'ui-monospace, "SF Mono", "Cascadia Code", "DejaVu Sans Mono", Menlo, monospace',
    },
    "dark_css_variables": {
        "color-background-primary": "#111418",
        "color-background-secondary": "#191d23",
        "color-background-border": "#343b45",
        "color-foreground-primary": "#e4e8ee",
        "color-foreground-secondary": "#a3adba",
        "color-brand-primary": "#8ab8ff",
        "color-brand-content": "#8ab8ff",
        "color-brand-visited": "#8ab8ff",
        "color-code-background": "#191d23",
    },
}
# The sidebar: a caption, and the pages under it.
sidebar = {
    "Tutorial": [
        "Overview <docs/tutorial/index>",
        "docs/tutorial/first_operator",
        "docs/tutorial/gradient",
        "docs/tutorial/cuda",
        "docs/tutorial/existing_operator",
        "docs/tutorial/ship",
        "docs/tutorial/map",
    ],
    "How-to guides": [
        "docs/howto/building",
        "docs/howto/kernels",
        "docs/howto/vectors",
        "docs/howto/check",
        "docs/howto/mutants",
        "docs/howto/existing",
        "docs/howto/benchmarks",
        "docs/howto/reload",
        "docs/howto/editors",
        "docs/howto/cpp_extension",
        "docs/howto/cache",
        "docs/howto/shipping",
        "docs/howto/migrating",
        "docs/howto/scaling",
        "docs/howto/predictor",
    ],
    "Reference": [
        "docs/reference/api",
        "docs/reference/cli",
        "docs/reference/runtimes",
        "docs/reference/failure_kinds",
        "docs/reference/exit_codes",
        "docs/reference/format",
        "docs/reference/host",
        "docs/glossary",
        "docs/compatibility",
    ],
    "Explanation": [
        "docs/explanation/why",
        "docs/explanation/checking",
        "docs/explanation/promises",
        "docs/explanation/measured",
        "docs/explanation/found",
        "docs/explanation/lltm",
        "docs/explanation/warp",
    ],
    "Examples": [
        "examples/resnet18/README",
        "examples/cpp_app/README",
        "examples/cpp_training/README",
        "examples/host_app/README",
        "examples/lltm_extension/README",
        "examples/serve/README",
    ],
    "Project": ["docs/index", "CONTRIBUTING", "CHANGELOG"],
}

# Headings become anchors as on GitHub, where the same pages are read.
myst_heading_anchors = 4

# Docstrings write code in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False

# Only commands are copied, without prompts and output.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"


def _toctrees() -> str:
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in sidebar.items()
    )


def _without_links_to_sources(text: str, folder: Path) -> str:
    """Return a page in which links to files and folders that the site does not have are plain text."""

    def plain(link: re.Match[str]) -> str:
        target = folder / link["target"]
        return link["text"] if target.exists() and target.suffix not in {".md", ".rst"} else link[0]

    return re.sub(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>(?![a-z]+:)[^)#\s]+)\)", plain, text)


def _adapt(_app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = _without_links_to_sources(source[0], (ROOT / name).parent)
    if name == root_doc:
        source[0] += _toctrees()


def _command_help(_app: Sphinx, _context: object, lines: list[str]) -> None:
    # The help of a command is plain text: an asterisk is one, and the examples are code.
    text, heading, examples = "\n".join(lines).partition("Examples:\n")
    code = "Examples::\n" + examples.replace("\n\n    ", "\n    ") if heading else ""
    lines[:] = [*(text.replace("*", r"\*") + code).splitlines(), ""]


def _examples_as_code(
    _app: Sphinx, _kind: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    # What follows `Example:` in a docstring is code. In the markup of Sphinx, that takes a second colon.
    lines[:] = [part for line in lines for part in (["Example::", ""] if line == "Example:" else [line])]


def _dashes(_app: Sphinx, doctree: nodes.document) -> None:
    # Sphinx separates a parameter from its description by hyphens, and leaves the dash to smartquotes.
    for text in [node for node in doctree.findall(nodes.Text) if node == " -- "]:
        text.parent.replace(text, nodes.Text(" – "))


def _start_page(app: Sphinx, error: Exception | None) -> None:
    # The page that servers and browsers open for the folder.
    if error is None:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    """Connect what Sphinx calls while it builds."""
    app.connect("source-read", _adapt)
    app.connect("autodoc-process-docstring", _examples_as_code, priority=400)  # before napoleon
    for part in ("description", "options", "arguments", "epilog"):
        app.connect(f"sphinx-click-process-{part}", _command_help)
    app.connect("doctree-read", _dashes)
    app.connect("build-finished", _start_page)
