"""The routes to one operator: each builds or calls it in its own way, and is compared with OpenCV alone."""

from __future__ import annotations

import json
import runpy
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import torch

import opwright
from examples.demo.pictures import difference, pictures
from examples.demo.process import Paused, run
from examples.demo.table import Row

if TYPE_CHECKING:
    from torch import Tensor

    from examples.demo.pictures import Picture

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
OP = REPOSITORY / "ops" / "warp_perspective"
APP = REPOSITORY / "examples" / "cpp_app"
RUNS = 50

IN_PYTHON = {
    "open": "op library: opwright.open",
    "files": "files: opwright.load",
    "strings": "strings: load_inline",
    "setuptools": "setuptools: OpExtension",
    "cmake": "CMake: find_package",
    "trace": "torch.jit.trace",
    "script": "torch.jit.script",
}
# The routes that build the operator themselves. The demo and CMake build it for the others.
BUILDS_ALONE = ("files", "strings", "setuptools")
IN_CPP = {
    ("linked", "trace"): "traced, operator linked",
    ("linked", "script"): "scripted, operator linked",
    ("opened", "trace"): "traced, operator opened",
    ("opened", "script"): "scripted, operator opened",
}


def opencv_alone() -> SimpleNamespace:
    """OpenCV without opwright, built just in time, which the routes are compared with."""
    alone = SimpleNamespace(**runpy.run_path(str(OP / "bare" / "bare.py")))
    first, *_ = pictures()
    alone.warp_perspective(*first.arguments)  # the first call builds it
    return alone


def build_cpp_app(folder: Path) -> float:
    """Build the C++ programs, and with them the operator; returns the duration of the operator's build in seconds."""
    prefix = f"-DCMAKE_PREFIX_PATH={opwright.cmake_prefix_path()}"
    build = folder / "cpp_app"
    run(["cmake", "-S", APP, "-B", build, prefix, f"-DOPWRIGHT_PYTHON={sys.executable}"])
    started = time.perf_counter()
    run(["cmake", "--build", build, "--target", "warp_perspective"])
    seconds = time.perf_counter() - started
    run(["cmake", "--build", build, "-j", "2"])
    return seconds


def start_route(route: str, folder: Path) -> Paused:
    """Build the operator by one route in a separate Python process, which then waits for a request to measure.

    Routes that build start with an empty cache; those that load the built operator find it in the demo's own cache.
    """
    own = {"OPWRIGHT_CACHE": str(folder / f"cache_{route}")} if route in BUILDS_ALONE else {}
    warnings = "ignore::DeprecationWarning,ignore::FutureWarning"
    return Paused([sys.executable, HERE / "route_process.py", route, folder], PYTHONWARNINGS=warnings, **own)


def python_row(route: str, process: Paused, folder: Path, expected: Tensor, built_s: float | None) -> tuple[Row, str]:
    """Measure a route that was started; returns its row, and the operator in its graph if it has one."""
    process.go_on()
    answer = json.loads((folder / f"{route}.json").read_text())
    result = torch.load(folder / f"{route}.pt", weights_only=True)
    build_s = answer["build_s"] if route in BUILDS_ALONE else built_s
    row = Row(IN_PYTHON[route], "Python", build_s, answer["run_ms"], difference(result, expected))
    return row, answer.get("graph", "")


def cpp_row(way: str, model: str, folder: Path, expected: Tensor) -> Row:
    """The row of one saved model in a C++ process without Python."""
    app = folder / "cpp_app"
    output = folder / f"{way}_{model}.pt"
    library: list[str | Path] = ["--library", app / "libwarp_perspective.so"] if way == "opened" else []
    files: list[str | Path] = [folder / f"{model}_model.pt", folder / "cpp_inputs.pt"]
    printed = run([app / f"run_{way}", *files, "--output", output, "--repeat", str(RUNS), *library])
    timing = json.loads(printed.strip().splitlines()[-1])
    result = torch.load(output, weights_only=True)
    return Row(IN_CPP[way, model], "C++, no Python", None, timing["median_ms"], difference(result, expected))


def bare_row(alone: SimpleNamespace, picture: Picture) -> Row:
    """OpenCV alone, into preallocated memory: the baseline of the others."""
    image, warp = picture.image, picture.warp.inverse()
    output = image.new_empty((picture.height, picture.width, *image.shape[2:]))
    seconds = alone.time_warp_perspective(image, warp, output, RUNS)
    return Row("cv::warpPerspective alone", "C++ function", None, statistics.median(seconds) * 1e3)
