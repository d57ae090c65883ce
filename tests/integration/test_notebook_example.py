"""The notebook of examples/ runs from its first cell to its last, and its operator passes its checks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.sample(of="long", by="file"),
]

NOTEBOOK = Path(__file__).parents[2] / "examples/notebook.ipynb"


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """Returns what each code cell printed."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its cells call the command `opwright` of this environment.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources).execute()
    assert "\n".join(printed(notebook)).count("5 of 5 cells passed") == 2
    assert "image/png" in notebook.cells[-1].outputs[-1].data


def test_the_saved_notebook_shows_its_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert "\n".join(printed(notebook)).count("5 of 5 cells passed") == 2
    assert "image/png" in notebook.cells[-1].outputs[-1].data
    assert {output.output_type for cell in notebook.cells for output in cell.get("outputs", [])} <= {
        "stream",
        "execute_result",
        "display_data",
    }
