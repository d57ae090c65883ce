"""A model that calls the operator, shipped in two formats, and run on a photograph in a process without Python."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from examples.demo.pictures import write_picture
from examples.demo.process import run
from examples.demo.routes import OP, REPOSITORY, RUNS
from examples.demo.table import Row
from examples.models import surface

if TYPE_CHECKING:
    from torch import Tensor

FORMATS = {"torchscript": "TorchScript", "aoti": "AOTInductor"}
MODEL = REPOSITORY / "examples" / "models" / "surface.py"
SUBJECT = "coins"
ALLOWED = 1e-4  # the tolerance of a float32 bundle
OPWRIGHT: list[str | Path] = [sys.executable, "-m", "opwright"]


@dataclass(frozen=True)
class Sight:
    """The input of the model, and its result in eager PyTorch.

    Attributes:
        photograph: a file.
        warp: a file with the homography that maps the view to the photograph.
        scores: (1, 5), float32.
        run_ms: the median duration in milliseconds.
    """

    photograph: Path
    warp: Path
    scores: Tensor
    run_ms: float


def check_row(folder: Path) -> Row:
    """Check the operator in each runtime that compiles nothing, compared with its reference."""
    started = time.perf_counter()
    report = folder / "check.json"
    run([*OPWRIGHT, "check", OP, "--quick", "--seed", "0", "--json", report])
    passed = [cell["runtime"] for cell in json.loads(report.read_text())["cells"] if cell["status"] == "passed"]
    return Row("opwright check --quick", f"{len(passed)} runtimes", time.perf_counter() - started)


def build_host(cache: str) -> tuple[Path, Row]:
    """Build the program that runs bundles, or find it in the user's `cache`; returns it and its row."""
    started = time.perf_counter()
    installed = run([sys.executable, "-m", "opwright.host.install"], OPWRIGHT_CACHE=cache)
    row = Row("the host that runs it", "C++, no Python", time.perf_counter() - started)
    return Path(installed.strip()) / "bin" / "opwright-host", row


def ship(kind: str, folder: Path) -> float:
    """Ship the model into `folder` with the command line; returns the duration in seconds."""
    started = time.perf_counter()
    run([*OPWRIGHT, "ship", f"{MODEL}:surface", "--ops", OP, "--format", kind, "-o", folder / kind])
    return time.perf_counter() - started


def sight(folder: Path) -> Sight:
    """A photograph in a file, and the model's result for it in this process. The operator must be open."""
    photograph, warp = dict(zip(surface.SURFACES, surface.samples(), strict=True))[SUBJECT]
    np.save(folder / "warp.npy", warp.numpy())
    model, seconds = surface.surface(), []
    torch.set_num_threads(1)  # more threads do not speed up such a small model
    with torch.no_grad():
        for _ in range(RUNS):
            started = time.perf_counter()
            scores = model(photograph, warp)
            seconds.append(time.perf_counter() - started)
    file = write_picture(photograph, folder / f"{SUBJECT}.png")
    return Sight(file, folder / "warp.npy", scores, statistics.median(seconds) * 1e3)


def host_arguments(bundle: Path, seen: Sight) -> list[str]:
    """The arguments of the host that run a bundle on the photograph."""
    photograph, warp, here = map(os.path.relpath, (seen.photograph, seen.warp, bundle))
    inputs = ["--input", f"photograph={photograph}", "--input", f"warp={warp}"]
    return [here, *inputs, "--top-k", "1"]


def host_row_of(kind: str, program: Path, folder: Path, shipped_s: float, seen: Sight) -> tuple[Row, str]:
    """Run a bundle without Python; returns its row, and the class that it finds in the photograph."""
    output = folder / f"{kind}.npz"
    arguments = [*host_arguments(folder / kind, seen), "--repeat", str(RUNS), "--threads", "1", "--output", str(output)]
    printed = run([program, *arguments, "--json", "-"])
    answer, figures = map(json.loads, printed.splitlines())
    if figures["python_mapped"]:
        sys.exit("Python is loaded in the host's process")
    scores = torch.from_numpy(np.load(output)["output"])
    differs = float((scores - seen.scores).abs().max() / seen.scores.abs().max())
    run_ms = figures["latency_seconds"]["p50"] * 1e3
    row = Row(f"shipped as {FORMATS[kind]}", "C++, no Python", shipped_s, run_ms, differs, ALLOWED)
    return row, surface.SURFACES[answer["outputs"][0]["top"][0][0]["index"]]
