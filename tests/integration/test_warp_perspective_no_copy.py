"""Only the warp itself moves pixels: OpenCV receives the addresses of the tensors.

The operator's own sources are built again with an extra header, which inserts a recorder between them and
cv::warpPerspective. They run in a separate process, because a namespace can be defined only once per process.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import opwright
from tests.interpreter import python

pytestmark = pytest.mark.needs("opencv")

FOLDER = Path(__file__).parents[2] / "ops" / "warp_perspective"

RECORDER = r"""
#pragma once
#include <opencv2/imgproc.hpp>

// The last call: image address and step, output address and step.
extern "C" __attribute__((visibility("default"))) inline std::uint64_t opencv_saw[4] = {};
extern "C" __attribute__((visibility("default"))) inline int opencv_is_to_fail = 0;

namespace cv {
inline void recorded(InputArray from, OutputArray into, InputArray matrix, Size size, int flags, int border_mode,
                     const Scalar& border_value) {
    if (opencv_is_to_fail) CV_Error(Error::StsError, "simulated failure");
    opencv_saw[0] = reinterpret_cast<std::uint64_t>(from.getMat().data);
    opencv_saw[1] = from.getMat().step[0];
    opencv_saw[2] = reinterpret_cast<std::uint64_t>(into.getMat().data);
    opencv_saw[3] = into.getMat().step[0];
    warpPerspective(from, into, matrix, size, flags, border_mode, border_value);
}
}  // namespace cv
#define warpPerspective recorded
"""

SCRIPT = r"""
import ctypes, json, sys
import skimage.data, torch, opwright
from torch.profiler import ProfilerActivity, profile

library = opwright.open(sys.argv[1])
native = ctypes.CDLL(str(library.path))
saw = (ctypes.c_uint64 * 4).in_dll(native, "opencv_saw")
is_to_fail = ctypes.c_int.in_dll(native, "opencv_is_to_fail")
photograph = torch.from_numpy(skimage.data.astronaut())
images = {
    "photograph": photograph,
    "every second row": photograph[::2],
    "a crop": photograph[100:300, 50:350],
    "transposed": photograph.transpose(0, 1),
    "every second column": photograph[:, ::2],
    "a batch of one": photograph[None, ::2],
    "a batch shown twice": photograph.expand(2, -1, -1, -1),
}
eye = torch.eye(3)
report = {}
for name, image in images.items():
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as memory:
        result = library.ops.warp_perspective(image, eye, 200, 300)
    last = result if result.dim() == 3 else result[-1]
    report[name] = {
        "image": [image.data_ptr(), image.stride(-3)],
        "output": [last.data_ptr(), last.stride(0)],
        "opencv": list(saw),
        # Individual events: an operator's event has the difference between its allocations and frees.
        "allocated": [
            event.nbytes()
            for event in memory.profiler.kineto_results.events()
            if event.name() == "[memory]" and event.nbytes() > 0
        ],
        "image bytes": image.nbytes,
        "output bytes": result.nbytes,
    }
report["errors"] = []
is_to_fail.value = 1
for image in (photograph[:9, :9], photograph[:9, :9].expand(50, -1, -1, -1), photograph.expand(3, -1, -1, -1)):
    try:
        library.ops.warp_perspective(image, torch.eye(3), 64, 64)
    except RuntimeError as error:
        report["errors"].append(str(error))
json.dump(report, sys.stdout)
"""

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "recorder.h").write_text(RECORDER)
    (folder / "cpu.cpp").write_bytes((FOLDER / "cpu.cpp").read_bytes())
    said = (FOLDER / "op.py").read_text()
    with_recorder = said.replace('packages=["opencv4"]', 'packages=["opencv4"], cflags=["-include", "recorder.h"]')
    assert with_recorder != said
    (folder / "op.py").write_text(with_recorder)
    source = str(Path(opwright.__file__).parents[1])
    ran = subprocess.run(
        [*python(), "-c", f"import sys; sys.path.insert(0, {source!r})\n{SCRIPT}", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: Report = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("image", ["photograph", "every second row", "a crop", "a batch of one", "a batch shown twice"])
def test_opencv_reads_the_image_in_place(report: Report, image: str) -> None:
    seen = report[image]
    assert seen["opencv"][:2] == seen["image"]  # uint8: strides in elements equal strides in bytes


@pytest.mark.parametrize("image", ["transposed", "every second column"])
def test_an_image_that_a_mat_cannot_represent_is_copied_once(report: Report, image: str) -> None:
    seen = report[image]
    assert seen["opencv"][0] != seen["image"][0]
    assert sorted(seen["allocated"]) == sorted([seen["image bytes"], seen["output bytes"]])


def test_opencv_writes_the_result_in_place(report: Report) -> None:
    for name in ("photograph", "every second row", "a crop", "transposed", "every second column", "a batch of one"):
        assert report[name]["opencv"][2:] == report[name]["output"], name


@pytest.mark.parametrize("image", ["photograph", "every second row", "a crop", "a batch of one", "a batch shown twice"])
def test_torch_allocates_only_the_result(report: Report, image: str) -> None:
    assert report[image]["allocated"] == [report[image]["output bytes"]]


def test_an_error_inside_opencv_becomes_one_line_in_a_batch_too(report: Report) -> None:
    assert report["errors"] == [report["errors"][0]] * 3
    assert report["errors"][0].startswith("OpenCV ")
    assert report["errors"][0].endswith(", recorded: simulated failure")
