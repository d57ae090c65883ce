"""Times the warp of ops/geometry against OpenCV, PyTorch's grid_sample and kornia, on pictures of 1920 x 1080.

    python benchmarks/warp.py [--threads 1 2] [--seconds 3] [--json FILE] [--only TEXT] [--peers FOLDER]

Rows that require a missing package are skipped: OpenCV of the package `opencv-python-headless`, and `kornia`. --peers
names a folder with more packages, such as one created by `pip install --target FOLDER --no-deps opencv-python-headless
kornia kornia-rs`. The system's OpenCV is the operator of ops/warp_perspective.

Two homographies, one that moves the picture a little and one that rotates it by 30 degrees, bilinear, zeros outside:

- forward: float32 with one and three channels, and uint8 with three, interleaved for all rows that support it;
- backward: the gradients of the picture and of the homography. That of grid_sample with a ready grid stops at the grid.

All rows of a table are timed in turn in each round. Prints medians, and the medians of the rounds' ratios, of the wall
time and of the processor time of all threads, which other programs hardly affect. Compares all results and gradients
before timing. The allocator keeps freed memory for the next call. A copy of the picture is a row too, because it reads
and writes the same amount of memory as a warp.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import skimage.data
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional
from torch.utils.benchmark import set_torch_threads

import opwright
from opwright.bencher.machine import machine_record
from opwright.bencher.rows import Prepared
from opwright.bencher.stopping import SpreadRule
from opwright.bencher.timer import Timing, measure

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
ROWS, COLUMNS = 1080, 1920
NATIVE, COPY = "ops/geometry", "a copy"
# From the output's pixels to those of the picture.
HOMOGRAPHIES = {
    "moved": ((0.98, -0.03, 20.0), (0.02, 1.01, -15.0), (1e-5, -2e-5, 1.0)),
    "turned": ((0.87, -0.5, 400.0), (0.5, 0.87, -300.0), (1e-5, -2e-5, 1.0)),
}
# OpenCV 4 rounds points to 1/32 pixel; grid_sample and kornia compute them in float32: the mean difference, relative to
# the range of the picture.
MEAN_DIFFERENCE = 2e-3
GRADIENT_DIFFERENCE = 1e-2

Warp = Callable[[], Any]


@dataclass
class Picture:
    """A picture (1, C, H, W), float32 within [0, 1] or uint8, and how to warp it."""

    pixels: Tensor
    homography: Tensor

    @classmethod
    def of(cls, channels: int, dtype: torch.dtype, homography: str) -> Picture:
        """A photograph of scikit-image in the size of the benchmark; uint8 is channels last."""
        photograph = torch.from_numpy(skimage.data.astronaut().copy()).permute(2, 0, 1)[None, :channels].float()
        pixels = functional.interpolate(photograph, (ROWS, COLUMNS), mode="bilinear", align_corners=True)
        matrix = torch.tensor(HOMOGRAPHIES[homography], dtype=torch.float64)
        if dtype == torch.uint8:
            return cls(pixels.round().to(dtype).contiguous(memory_format=torch.channels_last), matrix)
        return cls((pixels / 255).to(dtype).contiguous(), matrix)

    @property
    def range(self) -> float:
        """The largest possible pixel."""
        return 255.0 if self.pixels.dtype == torch.uint8 else 1.0

    def native(self) -> Tensor:
        """The operator."""
        result: Tensor = torch.ops.geometry.warp_perspective(self.pixels, self.homography, ROWS, COLUMNS)
        return result

    def grid(self, homography: Tensor) -> Tensor:
        """The grid for grid_sample: (1, H, W, 2) float32."""
        u, v = torch.meshgrid(torch.arange(float(COLUMNS)), torch.arange(float(ROWS)), indexing="xy")
        x, y, w = (row[0] * u + row[1] * v + row[2] for row in homography.float())
        return torch.stack((x / w * (2 / (COLUMNS - 1)) - 1, y / w * (2 / (ROWS - 1)) - 1), dim=-1)[None]


def opencv_wheel(cv2: ModuleType, picture: Picture) -> Warp:
    """OpenCV's Python package, into a preallocated array."""
    pixels = picture.pixels[0].permute(1, 2, 0).contiguous().numpy()
    into, matrix = pixels.copy(), picture.homography.numpy()
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP

    def warp() -> Tensor:
        done = cv2.warpPerspective(pixels, matrix, (COLUMNS, ROWS), dst=into, flags=flags)
        return torch.from_numpy(done).view(ROWS, COLUMNS, -1).permute(2, 0, 1)[None]

    return warp


def system_opencv(picture: Picture) -> Warp:
    """The system's OpenCV, through ops/warp_perspective."""
    pixels = picture.pixels.permute(0, 2, 3, 1).contiguous()
    warp = partial(torch.ops.opencv.warp_perspective, pixels, picture.homography, ROWS, COLUMNS, "linear", True)
    return lambda: warp().permute(0, 3, 1, 2)


def forward_rows(picture: Picture, cv2: ModuleType | None, kornia: ModuleType | None) -> dict[str, Warp]:
    """The implementations that can warp such a picture, by name."""
    rows: dict[str, Warp] = {NATIVE: picture.native}
    if cv2:
        rows[f"OpenCV {cv2.__version__}"] = opencv_wheel(cv2, picture)
    rows["OpenCV of ops/warp_perspective"] = system_opencv(picture)
    if picture.pixels.dtype == torch.uint8:
        return rows
    sample = partial(functional.grid_sample, picture.pixels, align_corners=True)
    ready = picture.grid(picture.homography)
    rows["grid_sample, grid ready"] = lambda: sample(ready)
    rows["grid_sample, grid made"] = lambda: sample(picture.grid(picture.homography))
    if kornia:
        inverse = torch.linalg.inv(picture.homography)[None].float()
        warp = kornia.geometry.transform.warp_perspective
        rows["kornia"] = lambda: warp(picture.pixels, inverse, (ROWS, COLUMNS), align_corners=True)
    return rows


def backward_rows(picture: Picture, kornia: ModuleType | None) -> dict[str, Prepared]:
    """The implementations of both gradients, by name. The homography is float32, as in a model."""
    pixels = picture.pixels.clone().requires_grad_()
    homography = picture.homography.float().requires_grad_()
    grid = picture.grid(picture.homography).requires_grad_()
    incoming = torch.linspace(0, 1, ROWS * COLUMNS).view(1, 1, ROWS, COLUMNS)

    def row(warp: Callable[[], Tensor], of: Tensor) -> Prepared:
        return Prepared(warp, lambda result: torch.autograd.grad(result, (pixels, of), incoming))

    rows = {
        NATIVE: row(lambda: torch.ops.geometry.warp_perspective(pixels, homography, ROWS, COLUMNS), homography),
        "grid_sample, grid ready": row(lambda: functional.grid_sample(pixels, grid, align_corners=True), grid),
        "grid_sample, grid made": row(
            lambda: functional.grid_sample(pixels, picture.grid(homography), align_corners=True), homography
        ),
    }
    if kornia:
        warp = kornia.geometry.transform.warp_perspective
        rows["kornia"] = row(
            lambda: warp(pixels, torch.linalg.inv(homography)[None], (ROWS, COLUMNS), align_corners=True), homography
        )
    return rows


def verify_forward(picture: Picture, rows: dict[str, Warp]) -> None:
    """Exit if a result differs from the native one by more than the method of computation explains."""
    expected = rows[NATIVE]().double()
    for name, warp in rows.items():
        difference = float((warp().double() - expected).abs().mean()) / picture.range
        if not difference <= MEAN_DIFFERENCE:
            sys.exit(f"{name}: the result is off by {difference:.1e} on average, so the times are meaningless")


def verify_backward(rows: dict[str, Prepared]) -> None:
    """Exit if a gradient of the homography or of the picture differs from the native one."""
    expected = _gradients(rows[NATIVE])
    for name, row in rows.items():
        for got, right in zip(_gradients(row), expected, strict=True):
            if got.shape != right.shape:  # the gradient of the grid
                continue
            difference = float((got - right).norm() / right.norm())
            if not difference <= GRADIENT_DIFFERENCE:
                sys.exit(f"{name}: a gradient is off by {difference:.1e}, so the times are meaningless")


def _gradients(row: Prepared) -> tuple[Tensor, ...]:
    return cast("tuple[Tensor, ...]", row.call(row.before()))


def show(console: Console, title: str, timings: dict[str, Timing]) -> None:
    """Print a table with the median of each row, and its ratio to the operator's."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in ("ms", f"of {NATIVE}", "processor ms", f"of {NATIVE}"):
        table.add_column(heading, justify="right")
    own = timings[NATIVE]
    for name, timing in timings.items():
        pairs = zip(timing.processor_times, own.processor_times, strict=True)
        table.add_row(
            name,
            f"{timing.median * 1e3:.2f}",
            f"{timing.ratio(own).median:.2f} x",
            f"{statistics.median(timing.processor_times) * 1e3:.2f}",
            f"{statistics.median(mine / theirs for mine, theirs in pairs):.2f} x",
        )
    console.print(table)


def _optional(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _keep_memory() -> None:
    """Make glibc keep freed memory, for all rows: allocating that of a result again takes as long as a warp."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        trim_threshold, mmap_threshold = -1, -3
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 2**30)


def main() -> None:
    """Compare, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, torch.get_num_threads()], help="thread counts")
    parser.add_argument("--seconds", type=float, default=3.0, help="time limit for the rounds of each table")
    parser.add_argument("--only", default="", help="only tables whose title contains this, such as 'uint8'")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    parser.add_argument("--peers", metavar="FOLDER", help="a folder with packages to compare with")
    asked = parser.parse_args()
    _keep_memory()
    if asked.peers:
        sys.path.append(asked.peers)
    opwright.open(ROOT / "ops" / "geometry")
    opwright.open(ROOT / "ops" / "warp_perspective")
    cv2, kornia = _optional("cv2"), _optional("kornia")
    console = Console(width=120)
    facts = {**machine_record().facts(), "cv2": getattr(cv2, "__version__", "-")}
    facts["kornia"] = getattr(kornia, "__version__", "-")
    console.print(*(f"{name}: {fact}" for name, fact in facts.items()), sep="; ")
    tables: dict[str, dict[str, Timing]] = {}
    rule = SpreadRule(asked.seconds)
    for threads in dict.fromkeys(asked.threads):
        with set_torch_threads(threads):
            if cv2:
                cv2.setNumThreads(threads)
            for homography in HOMOGRAPHIES:
                for channels, dtype in ((1, torch.float32), (3, torch.float32), (3, torch.uint8)):
                    kind = str(dtype).removeprefix("torch.")
                    title = f"{kind} x {channels}, {homography}; threads {threads}"
                    if asked.only not in title:
                        continue
                    picture = Picture.of(channels, dtype, homography)
                    rows = forward_rows(picture, cv2, kornia)
                    verify_forward(picture, rows)
                    into = torch.empty_like(picture.pixels)
                    rows[COPY] = partial(into.copy_, picture.pixels)
                    tables[title] = measure(rows, rule=rule)
                    show(console, title, tables[title])
                title = f"backward of float32 x 1, {homography}; threads {threads}"
                if asked.only in title:
                    backward = backward_rows(Picture.of(1, torch.float32, homography), kornia)
                    verify_backward(backward)
                    tables[title] = measure(backward, rule=rule)
                    show(console, title, tables[title])
    if asked.json:
        raw = {title: {name: timing.times for name, timing in rows.items()} for title, rows in tables.items()}
        Path(asked.json).write_text(json.dumps(raw) + "\n")


if __name__ == "__main__":
    main()
