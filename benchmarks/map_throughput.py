"""Times `opwright map` over photographs against the same job in plain Ray Data and with a DataLoader.

    python benchmarks/map_throughput.py [--rows 5000] [--rounds 3] [--batch 8] [--format aoti] [--json FILE]

The job: crops of scikit-image's photographs, JPEGs of 256 by 256, through a perspective warp and ResNet-18 (float32,
one thread each), with the scores written to Parquet. In each round, in turn:

- `opwright map` with one worker, with one per processor, and on Ray;
- plain Ray Data: paths, a decoder, and one actor per processor with `torch.jit.load` of the scripted model;
- a DataLoader whose workers decode, and a loop that runs the same scripted model and writes the scores;
- the host alone: `--repeat` in one process per processor, on one batch of decoded crops, read once.

All tables of opwright must be equal, by the SHA-256 of their files, and the scores of the others close to them;
otherwise only that is printed. The peers first run with several batch sizes and numbers of workers on a tenth of the
rows, and then with the best settings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mapped.peers import decoded  # next to this script
from PIL import Image
from rich.console import Console
from rich.table import Table
from skimage import data

from opwright.bencher.machine import machine_record
from opwright.host.install import host_program

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
MODEL, OPS = ROOT / "benchmarks/mapped/model.py", ROOT / "ops/geometry"
PEER = ROOT / "benchmarks/mapped/peers.py"
PICTURES = ("astronaut", "coffee", "chelsea", "rocket", "immunohistochemistry", "retina")
SIDE = 256
CLOSE = 1e-4  # relative to the largest score
OPWRIGHT = Path(sys.executable).with_name("opwright")
CORES = len(os.sched_getaffinity(0))
LOCAL_ONE, LOCAL, ON_RAY = "map, 1 worker", f"map, {CORES} workers", "map --on ray"
RAY_DATA, LOADER, HOST = "plain Ray Data", "DataLoader", "host --repeat"


def crops(folder: Path, count: int) -> None:
    """Write `count` crops of photographs."""
    generator = np.random.default_rng(0)
    pictures = [getattr(data, name)()[..., :3] for name in PICTURES]
    for number in range(count):
        picture = pictures[number % len(pictures)]
        top, left = (int(generator.integers(0, size - SIDE + 1)) for size in picture.shape[:2])
        crop = Image.fromarray(picture[top : top + SIDE, left : left + SIDE])
        crop.save(folder / f"{number:06d}.jpg", quality=92)


def ship(folder: Path, form: str) -> Path:
    """Ship the model."""
    bundle = folder / "bundle"
    words: list[str | Path] = [
        OPWRIGHT,
        "ship",
        f"{MODEL}:rectified_resnet18",
        "--ops",
        OPS,
        "--format",
        form,
        "-o",
        bundle,
    ]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return bundle


def run_map(bundle: Path, pictures: Path, output: Path, *more: str) -> float:
    """Rows per second of `opwright map`, computed from the duration of its process."""
    began = time.perf_counter()
    words: list[str | Path] = [OPWRIGHT, "map", bundle, pictures, "-o", output, *more]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return count_rows(output) / (time.perf_counter() - began)


def run_peer(kind: str, pictures: Path, output: Path, scripted: Path, *more: str) -> float:
    """Rows per second of a peer, computed from the duration of its process."""
    began = time.perf_counter()
    words: list[str | Path] = [sys.executable, PEER, kind, pictures, output, scripted, *more]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return count_rows(output) / (time.perf_counter() - began)


def run_host(bundle: Path, pictures: Path, rows: int, batch: int) -> float:
    """Rows per second of one host per processor, each of which runs one batch repeatedly."""
    paths = sorted(map(str, pictures.iterdir()))[:batch]
    picture = pictures.parent / "batch.npy"
    np.save(picture, np.stack([decoded(path).numpy() for path in paths]))
    repeat = max(20, rows // batch // CORES)
    words = [
        str(host_program()),
        str(bundle),
        "--input",
        str(picture),
        "--threads",
        "1",
        "--repeat",
        str(repeat),
        "--json",
        "-",
    ]
    hosts = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(CORES)]
    figures = [json.loads(host.communicate()[0].splitlines()[-1]) for host in hosts]
    return float(sum(batch * one["runs"] / one["wall_seconds"] for one in figures))


def count_rows(output: Path) -> int:
    """The number of rows in a folder of Parquet files."""
    return sum(pq.read_metadata(path).num_rows for path in output.glob("*.parquet"))


def digest(output: Path) -> str:
    """The SHA-256 of all result files, in order."""
    whole = hashlib.sha256()
    for path in sorted(output.glob("*.parquet")):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def scores(output: Path, column: str) -> np.ndarray[Any, Any]:
    """The scores (rows, 1000) of a folder of results, in the order of the pictures."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(output.glob("*.parquet"))])
    if "input" in table.column_names and column == "scores":
        table = table.sort_by("input")
    values = table.column(column).combine_chunks()
    flat = values.storage.flatten() if isinstance(values, pa.ExtensionArray) else values.flatten()
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(table), -1)


def best_settings(run: Callable[..., float], settings: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The fastest settings of a peer."""
    return max(settings, key=lambda one: run(*one))


def main() -> None:
    """Create the inputs, verify, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--format", default="aoti", choices=["aoti", "torchscript"])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pictures, few = folder / "pictures", folder / "few"
        for made, count in ((pictures, asked.rows), (few, max(asked.rows // 10, 64))):
            made.mkdir()
            crops(made, count)
        bundle, scripted = ship(folder, asked.format), folder / "scripted.pt"
        subprocess.run([sys.executable, PEER, "script", scripted], check=True)
        figures = measure(folder, bundle, scripted, pictures, few, asked)
    if asked.json is not None:
        asked.json.write_text(json.dumps({"machine": machine_record().facts(), "rows_per_second": figures}, indent=2))
    show(figures, asked.rows)


def measure(
    folder: Path, bundle: Path, scripted: Path, pictures: Path, few: Path, asked: argparse.Namespace
) -> dict[str, list[float]]:
    """Rows per second of each implementation in each round."""
    tries = 0

    def fresh() -> Path:
        nonlocal tries
        tries += 1
        return folder / f"out{tries}"

    best = {
        RAY_DATA: best_settings(lambda *more: run_peer("ray", few, fresh(), scripted, *more), [("8",), ("16",)]),
        LOADER: best_settings(
            lambda *more: run_peer("loader", few, fresh(), scripted, *more),
            [("8", "1", str(CORES)), ("16", "1", str(CORES)), ("8", str(CORES), str(CORES)), ("8", "1", "1")],
        ),
    }
    print(f"the peers' best settings: {best}")
    batch = ("--batch", str(asked.batch))
    rows: dict[str, Callable[[Path], float]] = {
        LOCAL_ONE: lambda out: run_map(bundle, pictures, out, *batch, "--workers", "1"),
        LOCAL: lambda out: run_map(bundle, pictures, out, *batch),
        ON_RAY: lambda out: run_map(bundle, pictures, out, *batch, "--on", "ray", "--address", "local"),
        RAY_DATA: lambda out: run_peer("ray", pictures, out, scripted, *best[RAY_DATA]),
        LOADER: lambda out: run_peer("loader", pictures, out, scripted, *best[LOADER]),
        HOST: lambda _: run_host(bundle, pictures, asked.rows, asked.batch),
    }
    figures: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(asked.rounds):
        outputs = {name: fresh() for name in rows}
        for name, run in rows.items():
            figures[name].append(run(outputs[name]))
            print(f"round {number + 1}: {name}: {figures[name][-1]:.1f} rows/s", flush=True)
        verify(outputs)
    return figures


def verify(outputs: dict[str, Path]) -> None:
    """Compare all tables of a round; exit if one is wrong."""
    digests = {name: digest(outputs[name]) for name in (LOCAL_ONE, LOCAL, ON_RAY)}
    if len(set(digests.values())) != 1:
        sys.exit(f"the tables differ: {digests}")
    expected = scores(outputs[LOCAL], "output")
    for name in (RAY_DATA, LOADER):
        difference = np.abs(scores(outputs[name], "scores") - expected).max() / np.abs(expected).max()
        if not difference <= CLOSE:
            sys.exit(f"{name}: the scores differ by {difference:.1e} of the largest")
    print(f"equal tables: {digests[LOCAL][:16]}", flush=True)


def show(figures: dict[str, list[float]], rows: int) -> None:
    """Print medians, and ratios of the same round."""
    table = Table(title=f"{rows} pictures")
    for name in ("", "rows/s", f"relative to {LOCAL_ONE}", f"of {HOST}"):
        table.add_column(name, justify="left" if not name else "right")
    for name, rates in figures.items():
        beside = statistics.median(rate / one for rate, one in zip(rates, figures[LOCAL_ONE], strict=True))
        part = statistics.median(rate / one for rate, one in zip(rates, figures[HOST], strict=True))
        table.add_row(name, f"{statistics.median(rates):.1f}", f"{beside:.2f}", f"{part:.2f}")
    Console().print(table)
    fastest = [max(pair) for pair in zip(figures[RAY_DATA], figures[LOADER], strict=True)]
    ratio = statistics.median(rate / peer for rate, peer in zip(figures[LOCAL], fastest, strict=True))
    print(f"{LOCAL}, relative to the faster of the peers: {ratio:.2f}")


if __name__ == "__main__":
    main()
