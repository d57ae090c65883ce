"""Dimensions of two inputs that must have equal sizes: a package's code would read past the end of the smaller one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import opwright
from opwright.bundle.format.manifest import InputDim
from opwright.host.install import host_program
from tests.integration.bundle.models import Added

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.sample(of="packages")
def test_the_host_rejects_sizes_that_differ_although_the_export_found_them_to_be_equal(tmp_path: Path) -> None:
    samples = [(torch.ones(rows, 4), torch.ones(rows, 4)) for rows in (3, 5)]
    shapes = {"one": "1..9,4", "other": "1..9,4"}
    shipped = opwright.ship(Added(), output=tmp_path / "bundle", format="aoti", samples=samples, shapes=shapes)
    assert shipped.manifest.equal_dims == ((InputDim("one", 0), InputDim("other", 0)),)
    for rows, code in ((7, 0), (6, 40), (8, 40)):
        np.savez(tmp_path / "inputs.npz", one=np.ones((7, 4), np.float32), other=np.ones((rows, 4), np.float32))
        command: list[str | Path] = [host_program(), shipped.path, "--input", tmp_path / "inputs.npz"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        refusal = (
            f"host: the input other has the size {rows} in dimension 0; expected 7, the size of dimension 0 of the "
            "input one\n"
        )
        assert (done.returncode, done.stderr) == (code, refusal if code else "")
