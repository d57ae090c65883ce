"""Many threads get the same results from a model as one thread, bit for bit, without races or memory growth."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.integration.host.conftest import Compiled, Host

HOST = Path(__file__).parents[3] / "src/opwright/host/cpp"
THREADS = 8
EACH = 1000
RUNS = 10_000
# Measured: 0.2 to 0.4 MiB, of which 0.1 are the run times. A leak of 200 bytes per run would amount to 2 MiB.
GROWTH = 2 * 2**20


def _answers(host: Host, *words: str | Path) -> list[Any]:
    done = host(*words, "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_eight_threads_get_the_same_bits_as_one(host: Host, any_bundle: Path, files: Path) -> None:
    draw = np.random.default_rng(0)
    for number in range(THREADS):
        image = draw.standard_normal((1 + number % 4, 3, 8 + number, 32 - number), dtype=np.float32)
        np.save(files / f"{number}.npy", image)
    for by in ("one", "eight"):
        lines = [
            {"inputs": {"image": f"{number}.npy", "shift": "shift.npy"}, "output": f"{by}-{number}.npz"}
            for number in range(THREADS)
        ]
        (files / by).write_text("\n".join(map(json.dumps, lines)))
    _answers(host, any_bundle, "--requests", files / "one")
    words = ("--repeat", str(EACH), "--runners", str(THREADS), "--threads", "1")
    *answers, figures = _answers(host, any_bundle, "--requests", files / "eight", *words)
    assert figures["runs"] == THREADS * EACH
    assert [answer["repeats"] for answer in answers] == [True] * THREADS
    for number in range(THREADS):
        assert (files / f"eight-{number}.npz").read_bytes() == (files / f"one-{number}.npz").read_bytes()


def test_memory_does_not_grow(host: Host, any_bundle: Path, fitting: list[str]) -> None:
    words = ("--threads", "1", "--repeat", str(RUNS), "--warm-up", "100")
    _, figures = _answers(host, any_bundle, *fitting, *words)
    assert figures["runs"] == RUNS
    assert figures["resident_bytes_before"] > 2**20
    assert figures["resident_bytes_after"] - figures["resident_bytes_before"] < GROWTH


@pytest.fixture(scope="module")
def stress(compiled: Compiled) -> Path:
    """The host's own code under ThreadSanitizer, with threads that load and run concurrently."""
    sources = [path for room in ("bundle", "engine", "model") for path in sorted((HOST / room).glob("*.cpp"))]
    # Operator libraries depend on libtorch.so, and find that of the process that opens them.
    more = ("-O1", "-fsanitize=thread", "-Wl,--no-as-needed", "-ltorch")
    return compiled("stress", [*sources, "program/runs.cpp", "tests/stress.cpp"], *more)


def _raced(stress: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    options = f"suppressions={HOST / 'tests/stress.suppressions'}"
    environment = {**os.environ, "TSAN_OPTIONS": options}
    command = [str(word) for word in (stress, *words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if "unexpected memory mapping" in done.stderr:
        # With a large vm.mmap_rnd_bits, the kernel leaves no address range for this compiler's ThreadSanitizer.
        command = ["setarch", "--addr-no-randomize", *command]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done


@pytest.mark.sample(of="long", by="file")
def test_the_host_has_no_data_races(stress: Path, torchscript: Path, aoti: Path) -> None:
    done = _raced(stress, "200", torchscript, aoti)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "8 threads, 200 runs of each, 0 wrong\n"
    assert done.stderr == ""


@pytest.mark.sample(of="long", by="file")
def test_a_planted_race_is_found(stress: Path, torchscript: Path, aoti: Path) -> None:
    done = _raced(stress, "--plant-a-race", "50", torchscript, aoti)
    assert done.returncode == 66
    assert "WARNING: ThreadSanitizer: data race" in done.stderr
    assert "stress.cpp" in done.stderr
