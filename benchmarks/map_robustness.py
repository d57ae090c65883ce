"""Tests `opwright map` at scale: memory of the driver, resuming, random kills, and the ledger at 10 million ids.

Run `.venv/bin/python benchmarks/map_robustness.py [memory] [files] [kills] [ledger]`; by default all of them. The
results of each map are checked before its figures are printed. `files` requires 1 GB of disk space.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import opwright
from opwright.scale.inputs.item import Item
from opwright.scale.layout import PLAN_NAME
from opwright.scale.results.destination import Destination
from opwright.scale.results.job import Job
from opwright.scale.results.ledger import Ledger
from opwright.scale.results.plan import Plan, shard_digests, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable

FEW, MANY = 5_000, 200_000
KILLS = 10
IDS, SHARD_ROWS = 10_000_000, 1000
# Runs the command line, and prints the peak memory of its process.
PROGRAM = """
import sys
from opwright.cli import main
try:
    main()
finally:
    with open("/proc/self/status") as file:
        peak = next(line for line in file if line.startswith("VmHWM"))
    print("PEAK", int(peak.split()[1]) / 1024, file=sys.stderr)
"""


class Sums(torch.nn.Module):
    """A model that takes almost no time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sums (B,) of rows (B, 4)."""
        return x.sum(1)


def require(is_so: bool, what: object) -> None:
    """Exit with 1 if the condition is false."""
    if not is_so:
        sys.exit(f"error: {what}")


def numbers(count: int) -> np.ndarray:
    """Rows of four numbers each."""
    return np.arange(4 * count, dtype=np.float32).reshape(count, 4) % 1000


def run(bundle: Path, *words: str | Path) -> tuple[float, float]:
    """Run a map, and return its duration in seconds and the memory of its driver in MiB."""
    command = [sys.executable, "-c", PROGRAM, "map", bundle, *words]
    began = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.monotonic() - began, float(done.stderr.rsplit("PEAK", 1)[1])


def check(output: Path, count: int) -> None:
    """Check that each input has its row, in order, with its sum."""
    first = 0
    expected = numbers(count).sum(1)
    for path in sorted(output.glob("part-*.parquet")):
        table = pq.read_table(path, columns=["id", "output"])
        ids, sums = table["id"].to_numpy(), np.array(table["output"].to_pylist(), np.float32).ravel()
        require(np.array_equal(ids, np.arange(first, first + len(ids))), path)
        require(np.array_equal(sums, expected[first : first + len(ids)]), path)
        first += len(ids)
    require(first == count, f"{first} rows of {count}")


def write_table(folder: Path, count: int) -> Path:
    """Inputs as rows of one table."""
    rows = pa.FixedSizeListArray.from_arrays(pa.array(numbers(count).ravel()), 4)
    pq.write_table(pa.table({"x": rows}), folder / f"{count}.parquet", row_group_size=FEW)
    return folder / f"{count}.parquet"


def write_files(folder: Path, count: int) -> Path:
    """Inputs as files of a few bytes."""
    made = folder / f"files-{count}"
    made.mkdir()
    for place, row in enumerate(numbers(count)):
        np.save(made / f"{place:07d}.npy", row[None])
    return made


def compare_memory(bundle: Path, folder: Path, name: str, write: Callable[[Path, int], Path]) -> None:
    """Print the driver's memory for few and for many inputs, and how long resuming a finished map takes."""
    peaks = []
    for count in (FEW, MANY):
        inputs, output = write(folder, count), folder / f"results of {name}-{count}"
        seconds, peak = run(bundle, inputs, "-o", output)
        check(output, count)
        peaks.append(peak)
        print(f"{name}: {count:,} inputs in {seconds:.1f} s ({count / seconds:,.0f}/s), driver {peak:.0f} MiB")
    print(f"{name}: the driver takes {peaks[1] / peaks[0] - 1:+.1%} at {MANY:,} inputs")
    seconds, peak = run(bundle, "-o", output, "--resume")
    print(f"{name}: nothing left of {MANY:,}: {seconds:.2f} s, driver {peak:.0f} MiB")
    seconds, peak = run(bundle, inputs, "-o", output, "--resume")
    print(f"{name}: the same with the inputs named again: {seconds:.2f} s, driver {peak:.0f} MiB")


def digests(folder: Path) -> dict[str, str]:
    """The digest of every file below a folder, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def kill_at_random(bundle: Path, folder: Path, count: int = 20_000) -> None:
    """Kill a map at random times, resume it each time, and compare the result with that of an uninterrupted one."""
    inputs = write_table(folder, count)
    words: list[str | Path] = [inputs, "--shard-rows", "100"]
    seconds, _ = run(bundle, *words, "-o", folder / "undisturbed")
    expected = digests(folder / "undisturbed")
    moments = random.Random(17)
    kills = done_before = 0
    output = folder / "disturbed"
    while kills < KILLS:
        is_begun = (output / "_opwright/job.json").exists()
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "opwright",
            "map",
            bundle,
            *words,
            "-o",
            output,
            *["--resume"] * is_begun,
        ]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.2, 0.2 + seconds / 2))
        if started.poll() is None:
            started.send_signal(signal.SIGKILL)
            kills += 1
        started.wait()
        there = len(list(output.glob("part-*.parquet")))
        print(f"kills: {kills}: {there} of {count // 100} files")
        require(there >= done_before, "the results differ")
        done_before = there
        if there == count // 100:
            for path in sorted(output.glob("part-*"))[::2]:  # leave more work to do
                path.unlink()
            done_before = there - len(expected) // 2
    run(bundle, *words, "-o", output, *["--resume"] * (output / "_opwright/job.json").exists())
    require(digests(output) == expected, "the results differ")
    print(f"kills: after {KILLS} kills the files are exactly those of an uninterrupted map")


def simulate_ledger(folder: Path) -> None:
    """Print the cost of the plan, the record and the search for finished shards at 10 million ids."""
    destination = Destination(str(folder / "ledger"))
    began = time.monotonic()
    with destination.writing(PLAN_NAME) as path:
        write_plan((Item(f"s3://bucket/photographs/{number:09d}.jpg") for number in range(IDS)), path, lambda _: None)
    print(f"ledger: plan of {IDS:,} ids: {time.monotonic() - began:.1f} s, ", end="")
    began = time.monotonic()
    with destination.open(PLAN_NAME) as file:
        shards = tuple(shard_digests(Plan(file), SHARD_ROWS))
    size = (folder / "ledger" / PLAN_NAME).stat().st_size
    print(f"{size / 1e6:.0f} MB; digests of {len(shards):,} shards: {time.monotonic() - began:.1f} s")
    job = Job("0" * 64, torch.__version__, 1, 1, {}, SHARD_ROWS, "/", IDS, shards)
    ledger = Ledger(job, destination)
    table = pa.table({"id": pa.array(range(SHARD_ROWS))}).replace_schema_metadata({"opwright.failed": "0"})
    pq.write_table(table, folder / "shard")
    for number in range(0, len(shards), 2):
        os.link(folder / "shard", folder / "ledger" / ledger.shard(number).name)
    began = time.monotonic()
    done = ledger.done()
    missing = ledger.missing(done)
    require((len(done), len(missing)) == (len(shards) // 2, len(shards) // 2), "the results differ")
    print(f"ledger: {len(done):,} shards done, {len(missing):,} missing: {time.monotonic() - began:.2f} s, ", end="")
    print(f"record of {len(job.to_json()) / 1e3:.0f} kB")
    with Path("/proc/self/status").open(encoding="ascii") as file:
        print("ledger:", next(line for line in file if line.startswith("VmHWM")).strip())


def main() -> None:
    """Run the tests that the arguments name."""
    wanted = sys.argv[1:] or ["memory", "files", "kills", "ledger"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "ledger" in wanted:
            simulate_ledger(folder)
        bundle = folder / "bundle"
        opwright.ship(Sums(), output=bundle, samples=[torch.zeros(2, 4)], shapes={"x": "float32[1..64,4]"})
        if "memory" in wanted:
            compare_memory(bundle, folder, "rows of a table", write_table)
        if "files" in wanted:
            compare_memory(bundle, folder, "files", write_files)
        if "kills" in wanted:
            kill_at_random(bundle, folder)


main()
