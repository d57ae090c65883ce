"""One operator over OpenCV, from its source to a process without Python: `make demo`, or `python -m examples.demo`.

1. Builds the operator and calls it on photographs.
2. In parallel: builds it by every other route (just in time from files and from strings, by setuptools, by CMake),
   saves it in traced and scripted models, checks it in the runtimes that compile nothing, and ships it with a small
   network behind it, as TorchScript and as an AOTInductor package. The host is built once for all.
3. One after another: measures each route on a photograph and compares it with the result of OpenCV alone, and runs both
   bundles on a photograph in a process without Python, compared with eager PyTorch.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import sys
import time
import warnings
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console

import opwright
from examples.demo.pictures import Picture, difference, pictures, write_picture
from examples.demo.process import side_by_side
from examples.demo.routes import (
    IN_CPP,
    IN_PYTHON,
    OP,
    REPOSITORY,
    bare_row,
    build_cpp_app,
    cpp_row,
    opencv_alone,
    python_row,
    start_route,
)
from examples.demo.shipped import FORMATS, build_host, check_row, host_arguments, host_row_of, ship, sight
from examples.demo.table import Row, table_of
from opwright.errors import OpwrightError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

STEPS = 3
# The longest tasks come first, so that none is left to wait for at the end.
AT_ONCE = max(2, min(4, os.cpu_count() or 1))
HOST = "the host, which runs bundles without Python"
CMAKE = "CMake: the operator and the C++ programs that call it"
ALONE = "OpenCV alone, to compare with"
CHECK = "opwright check --quick"
console = Console(highlight=False)
progress = Console(stderr=True, highlight=False)


@contextlib.contextmanager
def step(number: int, text: str) -> Iterator[None]:
    """Print the step when it starts, and its duration when it finishes."""
    progress.print(f"{number}/{STEPS} {text}", markup=False, soft_wrap=True)
    started = time.perf_counter()
    yield
    progress.print(f"    {time.perf_counter() - started:.0f} s")


def first_result(folder: Path) -> float:
    """Build the operator and call it on photographs; returns the duration of the build in seconds."""
    started = time.perf_counter()
    with progress.status("opwright.open: a C++ compiler is running"):
        opwright.open(OP)
    seconds = time.perf_counter() - started
    written = []
    for picture in pictures():
        result = torch.ops.opencv.warp_perspective(*picture.arguments)
        written.append(write_picture(picture.image, folder / f"{picture.name}_before.png").name)
        written.append(write_picture(result, folder / f"{picture.name}_after.png").name)
    progress.print(f"    the pictures are in {folder}: {', '.join(written)}", markup=False, soft_wrap=True)
    return seconds


def prepare(folder: Path, user_cache: str) -> dict[str, Any]:
    """Build, check and ship in every way, in parallel; returns the result of each task, by name."""
    tasks: dict[str, Callable[[], Any]] = {CHECK: partial(check_row, folder), HOST: partial(build_host, user_cache)}
    for kind, name in reversed(FORMATS.items()):
        tasks[shipped_as(name)] = partial(ship, kind, folder)
    tasks[CMAKE] = partial(build_cpp_app, folder)
    for route, name in IN_PYTHON.items():
        if route != "cmake":
            tasks[name] = partial(start_route, route, folder)
    tasks[ALONE] = opencv_alone
    return side_by_side(tasks, AT_ONCE, progress)


def shipped_as(form: str) -> str:
    """The name of the task that ships the model in a form."""
    return f"opwright ship: {form}"


def operator_rows(
    alone: SimpleNamespace, picture: Picture, folder: Path, prepared: dict[str, Any], built_s: float
) -> list[Row]:
    """The rows of the operator, by every route."""
    expected = alone.warp_perspective(*picture.arguments)
    rows = []
    for route, name in IN_PYTHON.items():
        process = start_route(route, folder) if route == "cmake" else prepared[name]
        others = {"open": built_s, "cmake": prepared[CMAKE]}
        row, graph = python_row(route, process, folder, expected, others.get(route))
        rows.append(row)
        if graph:
            progress.print(f"    {route}: the graph contains {graph}", markup=False, soft_wrap=True)
    rows += [cpp_row(way, model, folder, expected) for way, model in IN_CPP]
    return [*rows, bare_row(alone, picture)]


def model_rows(folder: Path, prepared: dict[str, Any]) -> list[Row]:
    """The rows of a model that calls the operator, in Python and from each bundle."""
    program, host = prepared[HOST]
    seen = sight(folder)
    rows = [host, Row("the model itself", "Python", None, seen.run_ms)]
    for kind, name in FORMATS.items():
        row, shown = host_row_of(kind, program, folder, prepared[shipped_as(name)], seen)
        rows.append(row)
        progress.print(f"    {name}: {seen.photograph.name} shows {shown}")
    program = os.path.relpath(Path(sys.executable).with_name("opwright"))  # the environment may not be active
    command = shlex.join([program, "run", *host_arguments(folder / kind, seen)])
    progress.print(f"    manually: {command}", markup=False, soft_wrap=True)
    return rows


def walk(folder: Path, user_cache: str) -> dict[str, list[Row]]:
    """Run all steps; returns the rows of each part of the table."""
    with step(1, "build the operator and call it on photographs"):
        built_s = first_result(folder)
    *_, timed = pictures()
    torch.save([timed.image, timed.warp, timed.height, timed.width], folder / "inputs.pt")
    torch.save([timed.image, timed.warp], folder / "cpp_inputs.pt")
    with step(2, "build, check and ship it in every way, in parallel (a minute or two)"):
        prepared = prepare(folder, user_cache)
    with step(3, "measure each way, one after another, and compare the results"):
        alone = prepared[ALONE]
        for picture in pictures():
            result = torch.ops.opencv.warp_perspective(*picture.arguments)
            if difference(result, alone.warp_perspective(*picture.arguments)) != 0:
                sys.exit(f"the operator and OpenCV alone differ on {picture.name}")
        return {
            "opencv::warp_perspective": operator_rows(alone, timed, folder, prepared, built_s),
            "the same, checked": [prepared[CHECK]],
            "a model that calls it": model_rows(folder, prepared),
        }


def main() -> None:
    """Run all steps, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "demo", help="the folder to write to")
    parser.add_argument("--json", metavar="FILE", help="also write the table as JSON")
    asked = parser.parse_args()
    folder: Path = asked.output.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for category in (DeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", category)  # TorchScript is one of the routes
    user_cache = os.environ.get("OPWRIGHT_CACHE", "")
    os.environ["OPWRIGHT_CACHE"] = str(folder / "cache")  # empty: the operator is built here

    started = time.perf_counter()
    try:
        parts = walk(folder, user_cache)
    except OpwrightError as error:
        sys.exit(f"error: {error}")
    console.print(table_of(parts, time.perf_counter() - started))
    rows = [row for part in parts.values() for row in part]
    if asked.json:
        Path(asked.json).write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    if not all(row.is_ok for row in rows):
        sys.exit("some results differ from the expected ones; see the table")


if __name__ == "__main__":
    main()
