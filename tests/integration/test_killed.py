"""Builds and ships killed at any time leave no incomplete file at its final path, and the next run cleans up."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
from opwright.cache.cache import Cache
from tests.interpreter import python

pytestmark = pytest.mark.sample(of="long", by="file")

_BUILD = """
import os, sys
print(os.getpid(), flush=True)
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
build_plan(plan_sources("mine", sys.argv[1:], cflags=["-O0"]))
"""
_SHIP = """
import os, sys
print(os.getpid(), flush=True)
import torch
import opwright
opwright.ship(torch.nn.Linear(64, 64), output=sys.argv[1], samples=[torch.ones(2, 64)], force=True)
"""
_BUILDS, _SHIPS = 80, 60


def _kill_after(seconds: float, script: str, *arguments: str | Path) -> None:
    """Start a program that prints its process ID, and kill it, unless it exits before that."""
    command = [*python(), "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        assert started.stdout is not None
        number = int(started.stdout.readline())
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def _check_cache(root: Path) -> None:
    """Check that all files at their final paths in the cache are complete."""
    for path in [*root.glob("objects/*"), *root.glob("libraries/*/*")]:
        content = path.stem if path.suffix == ".o" else path.parent.name
        assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(content)
    for path in root.glob("recipes/*"):
        assert json.loads(path.read_text())


def test_builds_killed_at_any_time_leave_no_incomplete_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path / "cache"))
    moments = random.Random(14)
    source, header = tmp_path / "a.cpp", tmp_path / "a.h"
    source.write_text('#include "a.h"\nextern "C" __attribute__((visibility("default"))) int a() { return ANSWER; }\n')
    root = Cache().root
    for number in range(_BUILDS):
        header.write_text(f"#define ANSWER {number % 20}\n")  # more versions than the cache keeps of one source
        _kill_after(moments.uniform(0, 0.4), _BUILD, source)
        _check_cache(root)
    header.write_text("#define ANSWER 77\n")  # a new build, because a cached one cleans nothing up
    artefact = build_plan(plan_sources("mine", [source], cflags=["-O0"]))
    assert ctypes.CDLL(str(artefact.path)).a() == 77
    assert list((root / "work").iterdir()) == []
    folders = {path.name for path in root.iterdir() if path.is_dir()}
    assert folders <= {"entries", "libraries", "locks", "objects", "recipes", "work"}


def _check_bundle(folder: Path) -> None:
    files = json.loads((folder / "manifest.json").read_text())["files"]
    for name, facts in files.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == facts["sha256"]
    inside = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert inside == {*files, "manifest.json", "manifest.sha256"}


def test_ships_killed_at_any_time_leave_a_complete_bundle_or_none(tmp_path: Path) -> None:
    moments = random.Random(14)
    target = tmp_path / "bundle"
    for _ in range(_SHIPS):
        _kill_after(moments.uniform(0, 1.2), _SHIP, target)
        if target.exists():
            _check_bundle(target)
    command: list[str | Path] = [*python(), "-c", _SHIP, target]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    _check_bundle(target)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
