"""`opwright map --on ray` on a real cluster of several raylets on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import opwright

pytestmark = pytest.mark.sample(of="long", by="file")

ROWS, CRASHING, SLOW = 120, 13.0, 14.0
BAD = {7: "crash", 50: "damaged"}


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of the fragile bundle that take 20 ms each; one crashes, and one is damaged."""
    folder = tmp_path_factory.mktemp("arrays")
    for number in range(ROWS):
        values = np.full((1, 3, 8, 8), number / 1000, np.float32)
        values[0, 0, 0, 0] = CRASHING if BAD.get(number) == "crash" else SLOW
        np.save(folder / f"{number:04d}.npy", values)
    (folder / "0050.npy").write_bytes(b"nothing")
    return folder


@pytest.fixture(scope="module")
def on_ray(fragile: Path, arrays: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Summaries of maps on a cluster, keyed by the process that was killed."""
    script = Path(__file__).with_name("cluster.py")
    words: list[str | Path] = [sys.executable, script, fragile, arrays, tmp_path_factory.mktemp("results")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def here(fragile: Path, arrays: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the same map on this machine."""
    output = tmp_path_factory.mktemp("here") / "results"
    opwright.map(fragile, arrays, output=output, workers=1)
    return output


def files(folder: Path) -> dict[str, bytes]:
    """The files of results, keyed by name."""
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_a_cluster_and_this_machine_write_the_same_files(on_ray: Any, here: Path) -> None:
    assert files(Path(on_ray["nothing"]["output"])) == files(here)


@pytest.mark.parametrize("killed", ["host", "actor", "raylet"])
def test_the_files_are_the_same_after_a_process_was_killed(on_ray: Any, here: Path, killed: str) -> None:
    output = Path(on_ray[killed]["output"])
    assert files(output) == files(here)
    assert sorted(path.name for path in (output / "_opwright").iterdir()) == ["inputs.parquet", "job.json", "lock"]


def test_only_the_crash_and_the_damaged_file_are_error_rows(on_ray: Any) -> None:
    table = pq.read_table(on_ray["nothing"]["output"])
    failed = {row["id"]: row["status"] for row in table.to_pylist() if row["status"] != "ok"}
    assert failed == {7: "run_failed", 50: "input_unreadable"}
    assert on_ray["nothing"]["failed"] == len(failed)


def test_a_missing_cluster_is_reported(fragile: Path, arrays: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("opwright")
    words: list[str | Path] = [program, "map", fragile, arrays, "-o", tmp_path / "out", "--on", "ray"]
    done = subprocess.run([*words, "--address", "127.0.0.1:1"], capture_output=True, text=True, check=False)
    assert done.returncode == opwright.MapError.exit_code
    assert "there is no Ray cluster at 127.0.0.1:1" in done.stderr
