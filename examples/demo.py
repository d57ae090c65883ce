"""One operator over OpenCV, by every road there is, on real photographs: `make demo`.

A photographed page of text is rectified and a photograph is tilted, by `opencv::warp_perspective`:
built just in time from files and from strings, by setuptools, by CMake, and as an op library; called
eagerly, traced and scripted in Python; and run from the saved model by a C++ process without Python.
Every result is compared with what OpenCV alone computes.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import statistics
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from skimage import data
from torch import Tensor

import opwright

REPOSITORY = Path(__file__).resolve().parents[1]
OP = REPOSITORY / "ops" / "warp_perspective"
APP = REPOSITORY / "examples" / "cpp_app"

PYTHON_ROUTES = {
    "open": "op library: opwright.open",
    "files": "files: opwright.load",
    "strings": "strings: load_inline",
    "setuptools": "setuptools: OpExtension",
    "cmake": "CMake: find_package",
    "trace": "torch.jit.trace",
    "script": "torch.jit.script",
}
CPP_ROUTES = {
    ("linked", "trace"): "traced, operator linked",
    ("linked", "script"): "scripted, operator linked",
    ("opened", "trace"): "traced, operator opened",
    ("opened", "script"): "scripted, operator opened",
}

console = Console(highlight=False)
progress = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Picture:
    """A photograph and how to look at it.

    Attributes:
        name: its file name, without the suffix.
        image: (H, W) or (H, W, 3), uint8.
        corners: where the corners of the output lie in the image, as (x, y): top left, top right,
            bottom right, bottom left.
        height: rows of the output, in pixels.
        width: columns of the output, in pixels.
    """

    name: str
    image: Tensor
    corners: tuple[tuple[float, float], ...]
    height: int
    width: int

    @property
    def warp(self) -> Tensor:
        """The homography, (3, 3) float64, that leads from the corners of the output to `corners`.

        Its eight unknowns solve the eight equations that the four corners give.
        """
        right, bottom = float(self.width), float(self.height)
        rows, targets = [], []
        for (x, y), (u, v) in zip(((0, 0), (right, 0), (right, bottom), (0, bottom)), self.corners, strict=True):
            rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
            targets += [u, v]
        solved = torch.linalg.solve(torch.tensor(rows, dtype=torch.float64), torch.tensor(targets, dtype=torch.float64))
        return torch.cat([solved, solved.new_ones(1)]).reshape(3, 3)


@dataclass(frozen=True)
class Row:
    """A line of the table: a road, where it ends, and what it took."""

    route: str
    where: str
    build_s: float | None
    run_ms: float
    difference: float | None


def pictures() -> list[Picture]:
    """The photographs: a page of text taken at an angle, and a cup of coffee."""
    text = torch.from_numpy(data.text())
    coffee = torch.from_numpy(data.coffee())
    return [
        Picture("text", text, ((155, 15), (360, 95), (260, 130), (65, 40)), 100, 600),
        Picture("coffee", coffee, ((-60, 40), (560, -30), (640, 420), (20, 380)), 400, 600),
    ]


def run(command: list[str | Path], **variables: str) -> str:
    """Run a program of this demo; when it fails, show what it printed and end."""
    ended = subprocess.run(  # noqa: S603  what this demo built, or the tools it builds with
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nfailed with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def build_cpp_app(folder: Path) -> float:
    """Build the C++ programs, and with them the operator; the seconds that the operator alone took."""
    prefix = f"-DCMAKE_PREFIX_PATH={opwright.cmake_prefix_path()}"
    build = folder / "cpp_app"
    run(["cmake", "-S", APP, "-B", build, prefix, f"-DOPWRIGHT_PYTHON={sys.executable}"])
    started = time.perf_counter()
    run(["cmake", "--build", build, "--target", "warp_perspective"])
    seconds = time.perf_counter() - started
    run(["cmake", "--build", build, "-j", "2"])
    return seconds


def difference(result: Tensor, expected: Tensor) -> float:
    """The largest difference of two images of one shape and dtype."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        sys.exit(
            f"expected {expected.dtype} of shape {tuple(expected.shape)}, got {result.dtype} {tuple(result.shape)}"
        )
    return float((result.double() - expected.double()).abs().max())


def python_row(route: str, folder: Path, expected: Tensor, built_s: float) -> Row:
    """One route in a Python process of its own, with an empty cache."""
    run(
        [sys.executable, REPOSITORY / "examples" / "routes.py", route, folder],
        OPWRIGHT_CACHE=str(folder / f"cache_{route}"),
        PYTHONWARNINGS="ignore::DeprecationWarning",
    )
    answer = json.loads((folder / f"{route}.json").read_text())
    if "graph" in answer:
        progress.print(f"{route}: the graph holds {answer['graph']}", markup=False, soft_wrap=True)
    result = torch.load(folder / f"{route}.pt", weights_only=True)
    build_s = built_s if route == "cmake" else None if route in ("trace", "script") else answer["build_s"]
    return Row(PYTHON_ROUTES[route], "Python", build_s, answer["run_ms"], difference(result, expected))


def cpp_row(way: str, model: str, folder: Path, expected: Tensor) -> Row:
    """One saved model in a C++ process that has no Python."""
    app = folder / "cpp_app"
    output = folder / f"{way}_{model}.pt"
    library: list[str | Path] = ["--library", app / "libwarp_perspective.so"] if way == "opened" else []
    files: list[str | Path] = [folder / f"{model}_model.pt", folder / "cpp_inputs.pt"]
    said = run([app / f"run_{way}", *files, "--output", output, "--repeat", "50", *library])
    timing = json.loads(said.strip().splitlines()[-1])
    result = torch.load(output, weights_only=True)
    return Row(CPP_ROUTES[way, model], "C++, no Python", None, timing["median_ms"], difference(result, expected))


def bare_row(bare: SimpleNamespace, picture: Picture) -> Row:
    """OpenCV alone, into memory that is there already: what the others are measured by."""
    image, warp = picture.image, picture.warp.inverse()
    output = image.new_empty((picture.height, picture.width, *image.shape[2:]))
    seconds = bare.time_warp_perspective(image, warp, output, 50)
    return Row("cv::warpPerspective alone", "C++ function", None, statistics.median(seconds) * 1e3, None)


def write_pictures(picture: Picture, result: Tensor, folder: Path) -> list[Path]:
    """Before and after, as PNG files."""
    written = []
    for when, image in (("before", picture.image), ("after", result)):
        path = folder / f"{picture.name}_{when}.png"
        Image.fromarray(image.numpy()).save(path)
        written.append(path)
    return written


def table_of(rows: list[Row]) -> Table:
    """The table that the demo ends with."""
    table = Table(title="opencv::warp_perspective, by every road")
    for heading in ("route", "where it ran"):
        table.add_column(heading)
    for heading in ("to build", "to run", "largest\ndifference"):
        table.add_column(heading, justify="right")
    for row in rows:
        build = "" if row.build_s is None else f"{row.build_s:.1f} s"
        differs = "" if row.difference is None else f"{row.difference:g}"
        table.add_row(row.route, row.where, build, f"{row.run_ms:.2f} ms", differs)
    return table


def main() -> None:
    """Build, run, compare, show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "demo", help="the folder to write to")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON too")
    asked = parser.parse_args()
    folder: Path = asked.output.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    warnings.simplefilter("ignore", DeprecationWarning)

    bare = SimpleNamespace(**runpy.run_path(str(OP / "bare" / "bare.py")))
    *others, timed = pictures()
    expected = bare.warp_perspective(timed.image, timed.warp, timed.height, timed.width, inverse_map=True)
    torch.save([timed.image, timed.warp, timed.height, timed.width], folder / "inputs.pt")
    torch.save([timed.image, timed.warp], folder / "cpp_inputs.pt")

    with progress.status("building the C++ programs and the operator with CMake (half a minute)"):
        cmake_s = build_cpp_app(folder)
    rows = []
    for route, name in PYTHON_ROUTES.items():
        with progress.status(f"Python: {name}"):
            rows.append(python_row(route, folder, expected, cmake_s))
    for (way, model), name in CPP_ROUTES.items():
        with progress.status(f"C++: {name}"):
            rows.append(cpp_row(way, model, folder, expected))

    rows.append(bare_row(bare, timed))

    opwright.open(OP)
    written = write_pictures(timed, expected, folder)
    for picture in others:
        arguments = (picture.image, picture.warp, picture.height, picture.width, "linear", True)
        result = torch.ops.opencv.warp_perspective(*arguments)
        alone = bare.warp_perspective(*arguments)
        if difference(result, alone) != 0:
            sys.exit(f"the operator and OpenCV alone differ on {picture.name}")
        written += write_pictures(picture, result, folder)

    console.print(table_of(rows))
    if asked.json:
        Path(asked.json).write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    console.print(f"The pictures, before and after, are in {folder}:")
    for path in written:
        console.print(f"  {path.name}", markup=False)
    if any(row.difference for row in rows):
        sys.exit("a route differs from OpenCV alone; see the table")


if __name__ == "__main__":
    main()
