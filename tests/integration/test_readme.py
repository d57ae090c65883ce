"""What the README and the page on shipping show is built and run as it stands there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch

import opwright
from opwright.bundle.format.read import read_manifest
from tests.interpreter import python

README = (Path(__file__).parents[2] / "README.md").read_text()
SHIPPING = (Path(__file__).parents[2] / "docs/shipping.md").read_text()


def _block(language: str, containing: str, page: str = README) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)
    (found,) = [block for block in blocks if containing in block]
    return str(found)


def test_the_library_of_the_readme_builds_and_computes_what_its_reference_says(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(_block("python", "@library.op"))
    (tmp_path / "cpu.cpp").write_text(_block("cpp", "OPWRIGHT_IMPL"))
    mine = opwright.open(tmp_path)
    x = torch.randn(5)
    assert torch.equal(mine.ops.scale(x, factor=4), mine.library.ops["scale"](x, 4))
    with pytest.raises(RuntimeError, match="x must be"):
        mine.ops.scale(x.double())


def test_the_first_bundle_of_the_page_on_shipping_is_shipped_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(_block("python", "def samples", SHIPPING))
    shown = SHIPPING.partition("-o gated\n")[2].partition("```")[0]
    for line in re.findall(r"^\$ opwright ((?:new|ship) .*)", SHIPPING, flags=re.MULTILINE)[:2]:
        command = [*python(), "-m", "opwright", *line.split()]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(?:goldens|lib|model|script|freeze|optimize|saved)[^ ]*", shown, flags=re.MULTILINE)
    assert len(rows) == 7
    assert re.findall(rf"^(?:{'|'.join(map(re.escape, rows))})", done.stdout, flags=re.MULTILINE) == rows
    manifest = read_manifest((tmp_path / "gated" / "manifest.json").read_bytes())
    assert [operator.called for library in manifest.libraries for operator in library.operators] == [True, False]


def test_every_link_of_the_documents_leads_somewhere() -> None:
    root = Path(__file__).parents[2]
    for page in (root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/*.md"), *root.glob("examples/*/*.md")):
        text = re.sub(
            r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL
        )  # a C++ lambda looks like a link
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
