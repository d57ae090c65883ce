"""Builds the host for libFuzzer, grows the corpus of every kind of input, and prints the findings: `make fuzz`."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from tests.fuzz import corpus
from tests.fuzz.seeds import seeds

ROOT = Path(__file__).parents[2]
HOST = ROOT / "src/opwright/host/cpp"
TORCH = Path(torch.__file__).parent
LIBRARIES = ("-ltorch_cpu", "-lc10", "-lcrypto", "-lturbojpeg", "-lpng", "-lminizip", "-lz")
# PyTorch, libpng, turbojpeg and minizip are not instrumented: errors in memory that they allocate are detected, but not
# errors on their stacks.
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
# An allocation beyond 1 GiB fails, as when memory is short: archives and pictures may claim any size.
OPTIONS = "allocator_may_return_null=1:max_allocation_size_mb=1024:detect_leaks="
MEMORY = Path("/dev/shm")  # noqa: S108  a folder with a unique name is created in it
# PyTorch never frees what it has parsed, so leak detection is off for these targets.
OF_PYTORCH = ("golden", "model", "package", "bundle")
# Larger inputs take longer without reaching new code.
LONGEST = {"manifest": 1 << 17, "request_list": 1 << 13, "stream": 1 << 13, "options": 1 << 11, "npy": 1 << 13}


@dataclass(frozen=True)
class Growth:
    """The result of growing one target."""

    target: str
    seconds: float
    executions: int
    inputs: int
    size: int
    edges: int
    findings: list[Path]


def build(folder: Path) -> None:
    """Build the program for all targets, which selects one by the name under which it is started."""
    sources = [
        source for room in ("bundle", "engine", "model", "program") for source in sorted((HOST / room).glob("*.cpp"))
    ]
    host = [source for source in sources if source.name not in {"main.cpp", "last_words.cpp"}]
    targets = [source for source in sorted((HOST / "tests/fuzz").glob("*.cpp")) if source.name != "replay.cpp"]
    flags: list[str | Path] = [
        *("-std=c++20", "-g1", "-O1", "-fsanitize=fuzzer-no-link", *SANITIZERS, "-I", HOST, "-I", HOST / "include"),
        *("-isystem", TORCH / "include", "-isystem", TORCH / "include/torch/csrc/api/include"),
    ]

    def compiled(name: str, sources: list[Path]) -> Path:
        whole = folder / f"{name}.cpp"
        whole.write_text("".join(f'#include "{source}"\n' for source in sources))
        subprocess.run(["clang++", *flags, "-c", whole, "-o", whole.with_suffix(".o")], check=True)
        return whole.with_suffix(".o")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, ("host", "targets"), (host, targets)))
    libraries = (f"-L{TORCH / 'lib'}", f"-Wl,-rpath,{TORCH / 'lib'}", "-Wl,--as-needed", *LIBRARIES)
    link: list[str | Path] = ["clang++", *SANITIZERS, "-fsanitize=fuzzer", *objects, "-o", folder / "fuzz", *libraries]
    subprocess.run(link, check=True, stderr=subprocess.DEVNULL)
    for target in corpus.TARGETS:
        (folder / target).unlink(missing_ok=True)
        (folder / target).symlink_to("fuzz")


def _ran(folder: Path, target: str, *words: str | Path) -> str:
    command = [folder / target, "-close_fd_mask=3", "-rss_limit_mb=4096", "-timeout=25", *words]
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as scratch:
        environment = {**os.environ, "ASAN_OPTIONS": f"{OPTIONS}{int(target not in OF_PYTORCH)}", "TMPDIR": scratch}
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    return done.stderr


def grow(folder: Path, target: str, seconds: float) -> Growth:
    """Grow a target's corpus, continuing after findings, and minimize it."""
    grown, smallest, found = (folder / target_folder / target for target_folder in ("corpus", "smallest", "findings"))
    shutil.rmtree(smallest, ignore_errors=True)
    for place in (grown, smallest, found):
        place.mkdir(parents=True, exist_ok=True)
    longest = f"-max_len={LONGEST.get(target, 1 << 15)}"
    began = time.monotonic()
    executions = 0
    while (left := seconds - (time.monotonic() - began)) >= 1:
        time_limit = f"-max_total_time={int(left)}"
        told = _ran(folder, target, time_limit, longest, "-print_final_stats=1", f"-artifact_prefix={found}/", grown)
        (folder / f"{target}.log").write_text(told)
        executions += int((re.findall(r"stat::number_of_executed_units: (\d+)", told) or ["0"])[-1])
        if not executions:
            break
    spent = time.monotonic() - began
    _ran(folder, target, "-merge=1", longest, smallest, grown)
    told = _ran(folder, target, "-runs=0", longest, smallest)
    edges = int((re.findall(r"cov: (\d+)", told) or ["0"])[-1])
    inputs = [path.read_bytes() for path in smallest.iterdir()]
    corpus.pack(target, inputs)
    return Growth(target, spent, executions, len(inputs), sum(map(len, inputs)), edges, sorted(found.iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, help="how long to grow each target")
    parser.add_argument("targets", nargs="*", help="targets to grow (all)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/fuzz", help="build folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of targets to grow concurrently")
    arguments = parser.parse_args()
    if not shutil.which("clang++"):
        parser.error("clang++ is missing: install clang, with its libFuzzer")
    targets = arguments.targets or corpus.TARGETS
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    build(folder)
    for target, inputs in seeds().items():
        if target not in targets:
            continue
        begin = folder / "corpus" / target
        begin.mkdir(parents=True, exist_ok=True)
        for name, content in inputs.items():
            (begin / f"seed-{name}").write_bytes(content)
        corpus.unpack(target, begin)
    print(
        f"{'target':<14}{'seconds':>8}{'executions':>12}{'a second':>10}{'inputs':>8}{'KiB':>7}{'edges':>7}  findings"
    )
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for one in pool.map(lambda target: grow(folder, target, arguments.seconds), targets):
            rate = one.executions / max(one.seconds, 1)
            print(
                f"{one.target:<14}{one.seconds:>8.0f}{one.executions:>12,}{rate:>10,.0f}{one.inputs:>8}"
                f"{one.size / 1024:>7.0f}{one.edges:>7}  {', '.join(map(str, one.findings)) or 'none'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
