"""What the README shows is built and run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import opwright

README = (Path(__file__).parents[2] / "README.md").read_text()


def _block(language: str, containing: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
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


def test_every_link_of_the_documents_leads_somewhere() -> None:
    root = Path(__file__).parents[2]
    for page in (root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/*.md"), *root.glob("examples/*/*.md")):
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
