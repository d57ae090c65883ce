"""Times the first build of an operator with PyTorch's builder and with opwright.

    python benchmarks/build_time.py [--rounds 3] [--json FILE]

One operator, OpenCV's warpPerspective on a float32 image, in two versions: with PyTorch's whole C++ API, as in its
tutorials, and with the stable ABI and opwright's headers. Both builders get the same arguments, including -O3, which
PyTorch's builder does not set by default. Each round builds every version cold, in a separate process and folder, calls
the built operator, and compares the results bit for bit. Prints the medians, and the median of each round's ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

FULL = """
#include <{header}>
#include <opencv2/imgproc.hpp>

at::Tensor warp(const at::Tensor& image, const at::Tensor& matrix) {{
    cv::Mat from(image.size(0), image.size(1), CV_32FC1, image.data_ptr<float>());
    cv::Mat by(3, 3, CV_32FC1, matrix.data_ptr<float>());
    at::Tensor output = at::empty_like(image);
    cv::Mat into(image.size(0), image.size(1), CV_32FC1, output.data_ptr<float>());
    cv::warpPerspective(from, into, by, into.size());
    return output;
}}

TORCH_LIBRARY(build_time, m) {{ m.def("warp", &warp); }}
"""

STABLE = """
#include <opencv2/imgproc.hpp>
#include <opwright/empty.h>
#include <opwright/op.h>

using opwright::Tensor;

Tensor warp(const Tensor& image, const Tensor& matrix) {
    cv::Mat from(image.size(0), image.size(1), CV_32FC1, image.mutable_data_ptr<float>());
    cv::Mat by(3, 3, CV_32FC1, matrix.mutable_data_ptr<float>());
    Tensor output = opwright::empty_like(image);
    cv::Mat into(image.size(0), image.size(1), CV_32FC1, output.mutable_data_ptr<float>());
    cv::warpPerspective(from, into, by, into.size());
    return output;
}

OPWRIGHT_LIBRARY(build_time, m) { m.def("warp", OPWRIGHT_FN(warp)); }
"""

# Runs in a new process; times the build and the load, but not the imports.
BUILD = """
import sys, time
from pathlib import Path
import torch, torch.utils.cpp_extension as theirs
import opwright
folder, builder = Path(sys.argv[1]), sys.argv[2]
load = opwright.load if builder == "opwright" else theirs.load
started = time.perf_counter()
load("build_time", [str(folder / "op.cpp")], extra_include_paths=["/usr/include/opencv4"],
     extra_cflags=["-O3"], extra_ldflags=["-lopencv_core", "-lopencv_imgproc"], build_directory=str(folder),
     is_python_module=False)
seconds = time.perf_counter() - started
torch.manual_seed(0)
image, matrix = torch.rand(64, 48), torch.tensor([[0.9, 0.1, 2], [-0.1, 1.1, 1], [0.001, 0, 1]])
torch.save(torch.ops.build_time.warp(image, matrix), folder / "result.pt")
print(seconds)
"""

ROWS = {
    "torch.utils.cpp_extension.load, torch/extension.h": ("theirs", FULL.format(header="torch/extension.h")),
    "torch.utils.cpp_extension.load, torch/script.h": ("theirs", FULL.format(header="torch/script.h")),
    "opwright.load, opwright/op.h": ("opwright", STABLE),
}
OURS = "opwright.load, opwright/op.h"


def build_cold(builder: str, source: str) -> tuple[float, bytes]:
    """The duration of one build in an empty folder, in seconds, and the result of a call of the built operator."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "op.cpp").write_text(source)
        # PyTorch's builder puts ccache, if installed, before the compiler: the next round would compile nothing.
        environment = {**os.environ, "OPWRIGHT_CACHE": str(folder / "cache"), "CCACHE_DISABLE": "1"}
        ended = subprocess.run(
            [sys.executable, "-c", BUILD, name, builder], env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode != 0:
            sys.exit(f"{builder} failed:\n{ended.stdout}{ended.stderr}")
        result: torch.Tensor = torch.load(folder / "result.pt", weights_only=True)
        return float(ended.stdout.split()[-1]), result.numpy().tobytes()


def main() -> None:
    """Build, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="cold builds of each version; at least 3 for a median")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    seconds: dict[str, list[float]] = {row: [] for row in ROWS}
    for number in range(asked.rounds):
        results = set()
        for row, (builder, source) in ROWS.items():
            taken, result = build_cold(builder, source)
            seconds[row].append(taken)
            results.add(result)
            print(f"round {number + 1}: {row}: {taken:.2f} s", file=sys.stderr)
        if len(results) != 1:
            sys.exit("the builds compute different results, so the times are meaningless")
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {asked.rounds} rounds")
    for row, times in seconds.items():
        ratio = statistics.median(theirs / ours for theirs, ours in zip(times, seconds[OURS], strict=True))
        print(f"{statistics.median(times):7.2f} s  {ratio:5.1f} x  {row}  (min {min(times):.2f}, max {max(times):.2f})")
    if asked.json:
        Path(asked.json).write_text(json.dumps(seconds, indent=2) + "\n")


if __name__ == "__main__":
    main()
