"""The routes of the demo that run in Python: each builds the operator its own way, calls it, and reports its duration.

The demo runs this file once per route, in a separate process:

    python route_process.py ROUTE FOLDER

FOLDER contains inputs.pt, which the demo wrote. The results are written to ROUTE.pt and ROUTE.json. Between the build
and the measurement, the process prints a line and waits for one, so that it does not measure while others build.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).resolve().parents[2]
OP = REPOSITORY / "ops" / "warp_perspective"
SOURCE = OP / "cpu.cpp"
RUNS = 50

SETUP = f"""
from setuptools import setup
from opwright.cpp_extension import BuildExtension, OpExtension

setup(
    name="warp",
    packages=[],
    ext_modules=[OpExtension("warp", library={str(OP)!r})],
    cmdclass={{"build_ext": BuildExtension}},
)
"""


class Rectify(nn.Module):
    """The view through a warp; the image unchanged if the warp is empty."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.height = height
        self.width = width

    def forward(self, image: Tensor, warp: Tensor) -> Tensor:
        """Warp `image` (H, W[, C]) by `warp` (3, 3), which maps the output to the image."""
        if bool((warp == 0).all()):
            return image
        warped: Tensor = torch.ops.opencv.warp_perspective(image, warp, self.height, self.width, "linear", True)
        return warped


def by_open(_: Path) -> None:
    """An op library, described by its op.py."""
    import opwright

    opwright.open(OP)


def by_files(_: Path) -> None:
    """Just in time, from files."""
    import opwright

    opwright.load("warp_files", [SOURCE], packages=["opencv4"], definitions=OP)


def by_strings(_: Path) -> None:
    """Just in time, from a string."""
    import opwright

    opwright.load_inline("warp_strings", SOURCE.read_text(), packages=["opencv4"], definitions=OP)


def by_setuptools(folder: Path) -> None:
    """With a setup.py."""
    place = folder / "with_setuptools"
    place.mkdir()
    (place / "setup.py").write_text(SETUP)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=place, check=True, stdout=subprocess.DEVNULL
    )
    torch.ops.load_library(place / "warp.so")


def by_cmake(folder: Path) -> None:
    """With CMake: the demo has already built it, because the C++ programs link it too."""
    torch.ops.load_library(folder / "cpp_app" / "libwarp_perspective.so")


BUILDS: dict[str, Callable[[Path], None]] = {
    "open": by_open,
    "files": by_files,
    "strings": by_strings,
    "setuptools": by_setuptools,
    "cmake": by_cmake,
}


def median_ms(call: Callable[[], Any]) -> float:
    """The median duration of many calls in milliseconds, after a few uncounted ones."""
    times = []
    for number in range(RUNS + 5):
        started = time.perf_counter()
        call()
        if number >= 5:
            times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times)


def main() -> None:
    """Run one route."""
    route, folder = sys.argv[1], Path(sys.argv[2])
    image, warp, height, width = torch.load(folder / "inputs.pt", weights_only=True)
    started = time.perf_counter()
    BUILDS[route if route in BUILDS else "open"](folder)
    answer: dict[str, Any] = {"build_s": time.perf_counter() - started}
    model: nn.Module = Rectify(height, width)
    if route in ("trace", "script"):
        saved = torch.jit.trace(model, (image, warp)) if route == "trace" else torch.jit.script(model)
        saved.save(folder / f"{route}_model.pt")
        call = next(line for line in str(saved.inlined_graph).splitlines() if "opencv::" in line)
        answer["graph"] = call.partition("= ")[2].partition(" #")[0]
        model = saved
    torch.save(model(image, warp), folder / f"{route}.pt")
    print("built", flush=True)
    sys.stdin.readline()
    answer["run_ms"] = median_ms(lambda: model(image, warp))
    (folder / f"{route}.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
