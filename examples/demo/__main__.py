"""One operator over OpenCV, all the way, on real photographs: `make demo`, or `python -m examples.demo` in the root.

1. Built by every road there is (just in time from files and from strings, by setuptools, by CMake, and as an op
   library), and called by every road (eagerly, traced, scripted, and from the saved model in C++): on photographs,
   compared with what OpenCV alone computes.
2. Checked in the runtimes that compile nothing.
3. Shipped, with a small network behind it, as TorchScript and as a package of AOTInductor.
4. Both run on a photograph by a process without Python, compared with what Python says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from rich.console import Console

import opwright
from examples.demo.pictures import Picture, difference, pictures, write_picture
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
)
from examples.demo.shipped import FORMATS, check_row, host_command, host_row, host_row_of, ship, sight
from examples.demo.table import Row, table_of
from opwright.errors import OpwrightError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

STEPS = 4
console = Console(highlight=False)
progress = Console(stderr=True, highlight=False)


@contextlib.contextmanager
def step(number: int, text: str) -> Iterator[None]:
    """Say what begins, and at its end how long it took."""
    progress.print(f"{number}/{STEPS} {text}", markup=False, soft_wrap=True)
    started = time.perf_counter()
    yield
    progress.print(f"    {time.perf_counter() - started:.0f} s")


def look(alone: SimpleNamespace, folder: Path) -> None:
    """Show what the operator does: the photographs before and after, in files."""
    opwright.open(OP)
    written = []
    for picture in pictures():
        result = torch.ops.opencv.warp_perspective(*picture.arguments)
        if difference(result, alone.warp_perspective(*picture.arguments)) != 0:
            sys.exit(f"the operator and OpenCV alone differ on {picture.name}")
        written.append(write_picture(picture.image, folder / f"{picture.name}_before.png").name)
        written.append(write_picture(result, folder / f"{picture.name}_after.png").name)
    progress.print(f"    the pictures are in {folder}: {', '.join(written)}", markup=False, soft_wrap=True)


def operator_rows(alone: SimpleNamespace, picture: Picture, folder: Path) -> list[Row]:
    """The operator by every road."""
    expected = alone.warp_perspective(*picture.arguments)
    torch.save([picture.image, picture.warp, picture.height, picture.width], folder / "inputs.pt")
    torch.save([picture.image, picture.warp], folder / "cpp_inputs.pt")
    with progress.status("building the C++ programs and the operator with CMake"):
        cmake_s = build_cpp_app(folder)
    rows = []
    for route, name in IN_PYTHON.items():
        with progress.status(f"Python: {name}"):
            row, graph = python_row(route, folder, expected, cmake_s)
        rows.append(row)
        if graph:
            progress.print(f"    {route}: the graph holds {graph}", markup=False, soft_wrap=True)
    for (way, model), name in IN_CPP.items():
        with progress.status(f"C++: {name}"):
            rows.append(cpp_row(way, model, folder, expected))
    return [*rows, bare_row(alone, picture)]


def walk(folder: Path) -> dict[str, list[Row]]:
    """All steps; the rows of each part of the table."""
    parts: dict[str, list[Row]] = {}
    with step(1, "build: the operator, by every road there is (a minute or more)"):
        alone = opencv_alone()
        look(alone, folder)
        *_, timed = pictures()
        parts["opencv::warp_perspective"] = operator_rows(alone, timed, folder)
    with (
        step(2, "check: the operator in every runtime that compiles nothing (half a minute)"),
        progress.status("opwright check --quick"),
    ):
        parts["the same, checked"] = [check_row(folder)]
    with step(3, "ship: a model that calls it, in two formats (the host is built once, which takes a minute or two)"):
        program, host = host_row()
        shipped = {}
        for kind, name in FORMATS.items():
            with progress.status(f"opwright ship: {name}"):
                shipped[kind] = ship(kind, folder)
    with step(4, "run: both on a photograph, without Python"):
        seen = sight(folder)
        parts["a model that calls it"] = [host, Row("the model itself", "Python", None, seen.run_ms)]
        for kind, seconds in shipped.items():
            row, said = host_row_of(kind, program, folder, seconds, seen)
            parts["a model that calls it"].append(row)
            progress.print(f"    {FORMATS[kind]}: {seen.photograph.name} shows {said}")
        command = host_command(Path("opwright run"), folder / kind, seen)
        progress.print(f"    by hand: {' '.join(map(str, command))}", markup=False, soft_wrap=True)
    return parts


def main() -> None:
    """Walk all of it, and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "demo", help="the folder to write to")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON too")
    asked = parser.parse_args()
    folder: Path = asked.output.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    warnings.simplefilter("ignore", DeprecationWarning)

    started = time.perf_counter()
    try:
        parts = walk(folder)
    except OpwrightError as error:
        sys.exit(f"error: {error}")
    console.print(table_of(parts, time.perf_counter() - started))
    rows = [row for part in parts.values() for row in part]
    if asked.json:
        Path(asked.json).write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    if not all(row.is_well for row in rows):
        sys.exit("something differs from what was expected; see the table")


if __name__ == "__main__":
    main()
