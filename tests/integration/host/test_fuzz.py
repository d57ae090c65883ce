"""For any content of a manifest, an archive or an input file, the host reports what is wrong and does not crash."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from tests.fuzz import corpus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import BuildOnce

pytestmark = pytest.mark.sample(of="long", by="file")

# The number of mutations per target, chosen so that each target takes a few seconds.
MUTATIONS = {"manifest": 3000, "npy": 4000, "npz": 1000, "picture": 3000, "request_list": 500, "options": 500}
MUTATIONS |= {"golden": 300, "model": 300, "package": 150, "bundle": 200, "stream": 2000}
# The outcomes that must occur for each target.
EXPECTED = {
    "manifest": {"accepted", "format_unknown", "manifest_invalid", "path_outside"},
    "npy": {"accepted", "input_unreadable"},
    "npz": {"accepted", "input_unreadable", "output_unwritable"},
    "picture": {"accepted", "input_unreadable"},
    "request_list": {"accepted", "input_unreadable"},
    "stream": {"accepted", "input_unreadable"},
    "options": {"accepted", "usage"},
    "golden": {"accepted", "golden_differs"},
    "model": {"accepted", "model_invalid"},
    "package": {"model_invalid"},
    "bundle": {"accepted", "usage", "manifest_invalid", "file_missing", "file_changed", "golden_differs"},
}
if platform.machine() != "x86_64":  # the bundles in the corpus were shipped for x86_64
    EXPECTED["bundle"].remove("accepted")


@pytest.fixture(scope="module")
def inputs(build_once: BuildOnce) -> Path:
    """The corpora, a folder for each target."""

    def make(folder: Path) -> None:
        for target in corpus.TARGETS:
            corpus.unpack(target, folder / target)

    return build_once("corpora", make)


def _ran(replay: Path, inputs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # A finding exits with a distinct code. Leak detection is off, because CI machines may run under a debugger. An
    # allocation beyond 1 GiB fails, as when memory is short: archives and pictures may claim any size.
    options = "abort_on_error=0:exitcode=99:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024"
    command: list[str | Path] = [replay, inputs, *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "ASAN_OPTIONS": options},
        check=False,
    )


def _outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for target, outcome, times in re.findall(r"^(\w+) (\w+) (\d+)$", done.stdout, flags=re.MULTILINE):
        found[target][outcome] = int(times)
    return found


def test_every_input_in_the_corpora_is_read_or_refused(replay: Path, inputs: Path) -> None:
    done = _ran(replay, inputs)
    assert done.returncode == 0, done.stderr[-4000:]
    outcomes = _outcomes(done)
    assert outcomes.keys() == set(corpus.TARGETS)
    for target, found in outcomes.items():
        assert sum(found.values()) == len(list((inputs / target).iterdir()))
        assert EXPECTED[target] <= found.keys()


@pytest.mark.parametrize("target", corpus.TARGETS)
def test_every_mutated_input_is_read_or_refused(replay: Path, inputs: Path, target: str) -> None:
    done = _ran(replay, inputs, "--mutate", target, "14", str(MUTATIONS[target]))
    assert done.returncode == 0, done.stderr[-4000:]
    assert sum(_outcomes(done)[target].values()) == MUTATIONS[target]


def test_a_planted_read_past_the_end_is_found_and_its_mutation_named(replay: Path, inputs: Path) -> None:
    done = _ran(replay, inputs, "--mutate", "manifest", "7", "200", "--plant", "137")
    assert done.returncode == 99
    assert "heap-buffer-overflow" in done.stderr
    assert "mutation 137 of the seed 7" in done.stderr


def test_a_mutation_is_reproducible(replay: Path, inputs: Path) -> None:
    twice = [_ran(replay, inputs, "--mutate", "manifest", "7", "200", "--only", "137") for _ in range(2)]
    assert twice[0].returncode == 0
    assert twice[0].stdout == twice[1].stdout
    assert twice[0].stdout.splitlines()[-1] in EXPECTED["manifest"]
    assert len(twice[0].stdout) > 100
