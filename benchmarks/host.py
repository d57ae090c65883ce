"""Times a shipped model in the host against Python, ONNX Runtime and OpenVINO, and its time to the first result.

    pip install -e ".[peers]"
    python benchmarks/host.py [--threads 2] [--rounds 15] [--runs 20] [--starts 11] [--json FILE] [--only TEXT]

First, ResNet-18 on one image of 224 by 224: eager PyTorch, bundles of both formats and precisions in the host, ONNX
Runtime and OpenVINO. The scores of all rows are compared with eager PyTorch's. Then all rows run in turn in each round,
each for `--runs` runs after a warm-up; the time of a row in a round is the median of its runs. Prints the medians over
the rounds, and the medians of the rounds' ratios to eager PyTorch, ONNX Runtime and OpenVINO's bfloat16.

Then a model with an OpenCV operator, timed from process start to process end, with one result: the host, and a Python
process that imports PyTorch, opens the operator library, loads the same model file and runs it once.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import opwright
from opwright.bencher.machine import machine_record
from opwright.host.install import host_program

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
RESNET = ROOT / "examples" / "resnet18" / "resnet18.py"
WARP_MODEL, WARP_OPS = ROOT / "examples" / "models" / "surface.py", ROOT / "ops" / "warp_perspective"
EAGER, EAGER_BF16 = "eager PyTorch", "eager PyTorch, bfloat16, channels last"
ONNX, OPENVINO, OPENVINO_BF16 = "ONNX Runtime", "OpenVINO", "OpenVINO, bfloat16"
BUNDLES = {
    "host, TorchScript": ("torchscript", "float32"),
    "host, AOTInductor": ("aoti", "float32"),
    "host, TorchScript, bfloat16": ("torchscript", "bfloat16"),
    "host, AOTInductor, bfloat16": ("aoti", "bfloat16"),
}
WARM_UP = 5
# Relative to the largest score.
CLOSE, CLOSE_BF16 = 1e-4, 5e-2

# A Python service up to its first result; the two model formats are loaded differently.
PYTHON = """
import sys
import numpy as np
import torch
library, model, inputs, output = sys.argv[1:]
torch.ops.load_library(library)
arrays = np.load(inputs)
tensors = [torch.from_numpy(arrays[name]) for name in arrays.files]
if model.endswith(".pt"):
    run = torch.jit.load(model)
else:
    from torch._inductor import aoti_load_package
    run = aoti_load_package(model)
with torch.no_grad():
    result = run(*tensors)
np.save(output, (result if isinstance(result, torch.Tensor) else result[0]).numpy())
"""

progress = Console(stderr=True)


@dataclass
class Row:
    """One way to run the model: `run(count)` returns the duration of each of `count` runs in seconds."""

    run: Callable[[int], list[float]]
    scores: np.ndarray[Any, np.dtype[np.float32]]
    medians: list[float] = field(default_factory=list)


def timed(call: Callable[[], object], count: int) -> list[float]:
    """The duration of each of `count` calls in seconds, after a warm-up."""
    for _ in range(WARM_UP):
        call()
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return seconds


def eager_row(model: torch.nn.Module, image: torch.Tensor) -> Row:
    """The model in eager PyTorch, in this process."""
    with torch.no_grad():
        scores = model(image).float().numpy()

    def run(count: int) -> list[float]:
        with torch.no_grad():
            return timed(lambda: model(image), count)

    return Row(run, scores)


def peer(name: str) -> Any:
    """The module of an inference engine for comparison."""
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.exit(f"{name} is not installed: pip install -e '.[peers]', or omit its rows with --only")


def onnx_row(file: Path, image: torch.Tensor, threads: int) -> Row:
    """ONNX Runtime with all graph optimizations."""
    onnxruntime = peer("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: image.numpy()}
    return Row(lambda count: timed(lambda: session.run(None, given), count), session.run(None, given)[0])


def openvino_row(file: Path, image: torch.Tensor, threads: int, precision: str) -> Row:
    """OpenVINO with its latency settings."""
    openvino = peer("openvino")
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
    }
    compiled = openvino.Core().compile_model(str(file), "CPU", settings)
    request = compiled.create_infer_request()
    given = image.numpy()
    scores = np.array(request.infer([given])[compiled.output(0)])
    return Row(lambda count: timed(lambda: request.infer([given]), count), scores)


def host_row(program: Path, bundle: Path, input_file: Path, threads: int) -> Row:
    """A bundle in the host: each round is a new process."""
    output = bundle.with_suffix(".npy")
    command: list[str | Path] = [program, bundle, "--input", input_file, "--threads", str(threads), "--output", output]
    report = bundle.with_suffix(".jsonl")

    def run(count: int) -> list[float]:
        line = [*command, "--warm-up", str(WARM_UP), "--repeat", str(count), "--json", report]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        figures = json.loads(report.read_text().splitlines()[-1])
        return [figures["latency_seconds"]["p50"]]

    run(1)
    return Row(run, np.load(output))


def rows_of(folder: Path, threads: int, only: str) -> dict[str, Row]:
    """All rows of ResNet-18 whose name contains `only`, and always eager PyTorch."""
    made = runpy.run_path(str(RESNET))
    model = made["resnet18"]().eval()
    # A batch of one, for which the other engines optimise too.
    image: torch.Tensor = next(iter(made["samples"]()))[0][:1].contiguous()
    np.save(folder / "image.npy", image.numpy())
    rows = {EAGER: eager_row(model, image)}
    progress.print("exporting to ONNX")
    file = folder / "resnet18.onnx"
    torch.onnx.export(model, (image,), str(file), dynamo=True, verbose=False)
    program = host_program()
    made_by: dict[str, Callable[[], Row]] = {
        EAGER_BF16: lambda: eager_row(
            made["resnet18"]().eval().to(torch.bfloat16, memory_format=torch.channels_last),
            image.to(torch.bfloat16, memory_format=torch.channels_last),
        ),
        ONNX: lambda: onnx_row(file, image, threads),
        OPENVINO: lambda: openvino_row(file, image, threads, "f32"),
        OPENVINO_BF16: lambda: openvino_row(file, image, threads, "bf16"),
    }

    def shipped(form: str, precision: str) -> Row:
        bundle = folder / f"{form}_{precision}"
        opwright.ship(
            f"{RESNET}:resnet18",
            output=bundle,
            format=form,
            precision=precision,
            samples=[image],
            shapes={"image": "float32[1,3,224,224]"},
        )
        return host_row(program, bundle, folder / "image.npy", threads)

    made_by |= {name: functools.partial(shipped, *how) for name, how in BUNDLES.items()}
    for name, make in made_by.items():
        if only in name:
            progress.print(f"creating: {name}", markup=False)
            rows[name] = make()
    return rows


def check(rows: dict[str, Row]) -> dict[str, float]:
    """The distance of each row's scores from eager PyTorch's; exits if one is too large."""
    wanted = rows[EAGER].scores
    distances = {}
    for name, row in rows.items():
        distances[name] = float(np.abs(row.scores - wanted).max() / np.abs(wanted).max())
        allowed = CLOSE_BF16 if "bfloat16" in name else CLOSE
        if row.scores.shape != wanted.shape or not distances[name] <= allowed:
            sys.exit(f"{name} differs by {distances[name]:.2g} of the largest score; expected at most {allowed:g}")
    return distances


def time_rows(rows: dict[str, Row], rounds: int, runs: int) -> None:
    """Run all rows in turn, `rounds` times."""
    for number in range(rounds):
        progress.print(f"round {number + 1} of {rounds}", end="\r")
        for row in rows.values():
            row.medians.append(statistics.median(row.run(runs)))
            time.sleep(0.05)  # let the spinning threads of the last row's pool go to sleep
    progress.print()


def ratio(row: Row, other: Row) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(own / its for own, its in zip(row.medians, other.medians, strict=True))


def process_seconds(command: list[str | Path]) -> float:
    """The duration of a process, in seconds."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def starts(folder: Path, count: int) -> dict[str, tuple[float, float]]:
    """The median duration of a process with one result, in seconds, by format: (host, Python)."""
    opwright.open(WARP_OPS)
    photograph, warp = next(iter(runpy.run_path(str(WARP_MODEL))["samples"]()))
    inputs = folder / "inputs.npz"
    np.savez(inputs, photograph=photograph.numpy(), warp=warp.numpy())
    script = folder / "python_service.py"
    script.write_text(PYTHON)
    found = {}
    for form in ("torchscript", "aoti"):
        bundle = folder / f"surface_{form}"
        shipped = opwright.ship(f"{WARP_MODEL}:surface", [WARP_OPS], output=bundle, format=form)
        manifest = shipped.manifest
        results = [folder / "host.npy", folder / "python.npy"]
        host: list[str | Path] = [host_program(), bundle, "--input", inputs, "--output", results[0], "--warm-up", "0"]
        files = [bundle / manifest.libraries[0].file, bundle / manifest.model.file, inputs, results[1]]
        python: list[str | Path] = [sys.executable, script, *files]
        process_seconds(host), process_seconds(python)
        one, other = map(np.load, results)
        if not np.array_equal(one, other):
            sys.exit(f"{form}: the host and Python differ by {np.abs(one - other).max()}")
        pairs = [(process_seconds(host), process_seconds(python)) for _ in range(count)]
        found[form] = (statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs))
    return found


def show(rows: dict[str, Row], distances: dict[str, float], console: Console) -> list[dict[str, Any]]:
    """Print the table of ResNet-18, and return it as records."""
    table = Table(title="ResNet-18, one picture of 224 x 224")
    table.add_column("row")
    for heading in ("median", "of eager", "of ONNX Runtime", "of OpenVINO bf16", "from eager's scores"):
        table.add_column(heading, justify="right")
    records = []
    for name, row in rows.items():
        ratios = {other: ratio(row, rows[other]) for other in (EAGER, ONNX, OPENVINO_BF16) if other in rows}
        median = statistics.median(row.medians)
        cells = [f"{ratios[other]:.2f}" if other in ratios else "" for other in (EAGER, ONNX, OPENVINO_BF16)]
        table.add_row(name, f"{median * 1e3:.2f} ms", *cells, f"{distances[name]:.1e}")
        records.append({"row": name, "seconds": median, "ratios": ratios, "distance": distances[name]})
    console.print(table)
    return records


def main() -> None:
    """Ship, compare, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=20, help="runs of a row per round")
    parser.add_argument("--starts", type=int, default=11, help="pairs of processes; 0 for none")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name contains TEXT")
    parser.add_argument("--json", metavar="FILE", help="also write the tables as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    console = Console()
    record = machine_record()
    for name, fact in record.facts().items():
        console.print(f"{name}: {fact}", markup=False)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = rows_of(folder, arguments.threads, arguments.only)
        distances = check(rows)
        time_rows(rows, arguments.rounds, arguments.runs)
        records = show(rows, distances, console)
        begun = starts(folder, arguments.starts) if arguments.starts else {}
    for form, (host, python) in begun.items():
        console.print(
            f"the warp model, {form}, start to end with one result: host {host:.3f} s, Python {python:.3f} s, "
            f"ratio {host / python:.2f}"
        )
    if arguments.json:
        result = {"machine": record.facts(), "threads": arguments.threads, "rows": records, "starts": begun}
        Path(arguments.json).write_text(json.dumps(result, indent=2, default=str) + "\n")


if __name__ == "__main__":
    main()
