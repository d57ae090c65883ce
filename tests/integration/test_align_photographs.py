"""The example that aligns two photographs finds the homography between them, and draws the result."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import skimage.io

from tests.interpreter import python

pytestmark = pytest.mark.sample(of="long", by="file")

SCRIPT = Path(__file__).parents[2] / "examples" / "align_photographs.py"
AS_SCRIPT = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*python(), "-c", AS_SCRIPT, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_corners_are_found_to_half_a_pixel(tmp_path: Path) -> None:
    done = run("--picture", tmp_path / "aligned.png")
    assert done.returncode == 0, done.stderr
    found = re.search(r"the corners were up to (\S+) pixels off, and are (\S+)", done.stdout)
    assert found is not None
    assert float(found[1]) > 50
    assert float(found[2]) < 0.5
    picture = skimage.io.imread(tmp_path / "aligned.png")
    before, after = picture[400:, :600], picture[400:, 600:]
    assert after.mean() < before.mean() / 3


def test_a_single_photograph_is_rejected(tmp_path: Path) -> None:
    done = run(tmp_path / "one.jpg")
    assert done.returncode == 2
    assert "expected two photographs, or none, got 1" in done.stderr
