"""Ray reads the table of a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import opwright

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.scale.conftest import Inputs

pytestmark = [pytest.mark.needs("ray"), pytest.mark.sample(of="long", by="file")]


# Ray deprecates its own settings.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ray_reads_tensors_and_numbers_and_errors(bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
    import ray
    from ray import data  # which takes a second

    inputs.add(1.0, 2.0, 3.0)
    opwright.map(bundle, inputs.folder, output=tmp_path / "out")
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        rows = data.read_parquet(str(tmp_path / "out")).take_all()
    finally:
        ray.shutdown()
    assert sorted(row["id"] for row in rows) == [0, 1, 2]
    assert {row["status"] for row in rows} == {"ok"}
    assert {np.shape(row["output_0"]) for row in rows} == {(3,)}
    assert {tuple(row["output_1"]["shape"]) for row in rows} == {(3, 4, 4)}
