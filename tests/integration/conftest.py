"""Shared fixtures: builds with only the compiler and with CMake, and inspection of the results."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
import torch
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from filelock import FileLock

import opwright
from opwright.builder.setuptools import NEWEST_TESTED
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.builder.compile import Artefact

PACKAGES = Path(__file__).parents[1] / "packages"
HEADERS = Path(__file__).parents[2] / "src/opwright/include"
BUILD = Path(__file__).parents[2] / "build"
TORCH = Path(torch.__file__).parent
COMPILE = (
    *("g++", "-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique"),
    *("-Wall", "-Wextra", "-Werror", "-DTORCH_TARGET_VERSION=0x020b000000000000"),
    *("-isystem", str(TORCH / "include"), "-I", str(HEADERS)),
)
LINK = (
    *("-shared", f"-L{TORCH / 'lib'}", f"-Wl,-rpath,{TORCH / 'lib'}"),
    *("-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10", "-Wl,--as-needed"),
)
# In a separate process, because a namespace is taken for the lifetime of a process.
SHIP = """
import sys
import opwright
package, output, format = sys.argv[1:]
opwright.ship(f"{package}/op.py:model", [package], output=output, format=format)
"""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    # Tests read the messages: in English, with plain quotes.
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def _written(folder: Path, texts: tuple[str, ...]) -> list[str]:
    """Writes each text to a file named by its contents, and returns the paths."""
    paths = []
    for text in texts:
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
        path.write_text(text)
        paths.append(str(path))
    return paths


def write(folder: Path, files: dict[str, str]) -> Path:
    """Writes texts to files in a folder, and returns the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def write_program(path: Path, text: str) -> Path:
    """Writes an executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def answer_of(artefact: Artefact) -> int:
    """The result of `answer()` in a shared object."""
    # A copy, because a process opens the same path only once.
    copy = artefact.path.with_name(f"{time.monotonic_ns()}.so")
    shutil.copy(artefact.path, copy)
    answer = int(ctypes.CDLL(str(copy)).answer())
    copy.unlink()
    return answer


def mapped_files(told: str) -> set[str]:
    """The names of the shared objects that a process maps, from what the dynamic linker prints with LD_DEBUG=files."""
    return {Path(name).name for name in re.findall(r"file=(.+?) \[\d+\];  generating link map", told)}


@pytest.fixture
def libpython(tmp_path: Path) -> Path:
    """An empty shared object with the name of Python's."""
    path = tmp_path / "libpython3.so"
    subprocess.run(["c++", "-shared", "-o", path, "-x", "c++", os.devnull], check=True)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, with an empty cache."""
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="session")
def op_header(build_once: BuildOnce) -> Callable[..., list[str]]:
    """Returns a function that adds `opwright/op.h`, precompiled, to what g++ compiles, if a text includes it."""

    def make(folder: Path) -> None:
        (folder / "op.h").write_text("#include <opwright/op.h>\n#include <torch/csrc/stable/ops.h>\n")
        done = _run(*COMPILE, "-x", "c++-header", str(folder / "op.h"), "-o", str(folder / "op.h.gch"))
        assert done.returncode == 0, done.stderr

    def op_header(*texts: str) -> list[str]:
        if not any("#include <opwright/op.h>" in text for text in texts):
            return []
        return ["-Winvalid-pch", "-include", str(build_once("precompiled", make) / "op.h")]

    return op_header


@pytest.fixture(scope="session")
def compile_library(
    tmp_path_factory: pytest.TempPathFactory, op_header: Callable[..., list[str]]
) -> Callable[..., Path]:
    """Returns a function that builds one shared object from C++ texts; each combination is built once."""
    folder = tmp_path_factory.mktemp("libraries")

    def compile_library(*sources: str) -> Path:
        paths = _written(folder, sources)
        library = folder / f"lib{hashlib.sha256(' '.join(paths).encode()).hexdigest()[:16]}.so"
        if not library.exists():
            done = _run(*COMPILE, *op_header(*sources), *paths, "-o", str(library), *LINK)
            assert done.returncode == 0, done.stderr
        return library

    return compile_library


@pytest.fixture(scope="session")
def compiler_refuses(
    tmp_path_factory: pytest.TempPathFactory, op_header: Callable[..., list[str]]
) -> Callable[..., str]:
    """Returns a function that compiles a C++ text that must not compile, and returns the compiler's output."""
    folder = tmp_path_factory.mktemp("refused")

    def compiler_refuses(source: str) -> str:
        done = _run(*COMPILE, *op_header(source), "-fsyntax-only", *_written(folder, (source,)))
        assert done.returncode != 0, f"this compiles:\n{source}"
        return done.stderr

    return compiler_refuses


class BuildOnce(Protocol):
    """Returns the folder that `make` filled, once per session, in whichever worker came first."""

    def __call__(self, name: str, make: Callable[[Path], None]) -> Path: ...


class Shipped(Protocol):
    """Returns the bundle of a package in tests/packages in one of the two formats; it must not be modified."""

    def __call__(self, package: str, format: str = "torchscript") -> Path: ...


class Cmake(Protocol):
    """Configures `source` in `build` as a user of opwright does, and builds it unless told otherwise."""

    def __call__(
        self, source: Path, build: Path, *options: str, only_configure: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]: ...


class Dynamic(Protocol):
    """Reads the entries of a kind, such as `needed` or `runpath`, from an ELF file's dynamic section."""

    def __call__(self, path: Path, kind: str) -> list[str]: ...


@pytest.fixture(scope="session")
def build_once(tmp_path_factory: pytest.TempPathFactory) -> BuildOnce:
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # each worker has its own folder; this one belongs to the session

    def once(name: str, make: Callable[[Path], None]) -> Path:
        folder = base / name
        done = folder / ".done"
        with FileLock(base / f"{name}.lock"):
            if not done.exists():
                folder.mkdir(exist_ok=True)
                make(folder)
                done.touch()
        return folder

    return once


@pytest.fixture(scope="session", params=["81.0.0", NEWEST_TESTED])
def setuptools_release(request: pytest.FixtureRequest) -> str:
    """The newest setuptools that PyTorch 2.11 accepts, and the newest."""
    return str(request.param)


@pytest.fixture(scope="session")
def with_setuptools(setuptools_release: str) -> dict[str, str]:
    """The variables with which a Python process uses this setuptools, whichever one the environment has."""
    release = setuptools_release
    if importlib.metadata.version("setuptools") == release:
        return {}
    BUILD.mkdir(exist_ok=True)
    folder = BUILD / f"setuptools-{release}"
    with FileLock(f"{folder}.lock"), tempfile.TemporaryDirectory(dir=BUILD) as scratch:
        if not folder.exists():
            flags = ("--quiet", "--disable-pip-version-check", "--retries=1", "--no-deps", f"--target={scratch}/made")
            done = _run(sys.executable, "-m", "pip", "install", *flags, f"setuptools=={release}")
            if "(from versions: none)" in done.stderr:
                pytest.skip(f"setuptools {release} is not installed, and pip cannot reach a package index")
            assert done.returncode == 0, done.stderr
            Path(scratch, "made").rename(folder)  # complete, even if another run is stopped
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


@pytest.fixture(scope="session")
def shipped(build_once: BuildOnce) -> Shipped:
    def shipped(package: str, format: str = "torchscript") -> Path:
        def ship(folder: Path) -> None:
            words: list[str | Path] = [PACKAGES / package, folder / "bundle", format]
            done = subprocess.run([*python(), "-c", SHIP, *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

        return build_once(f"{package}-{format}", ship) / "bundle"

    return shipped


@pytest.fixture(scope="session")
def cmake() -> Cmake:
    def run(
        source: Path, build: Path, *options: str, only_configure: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        found = (f"-DCMAKE_PREFIX_PATH={opwright.cmake_prefix_path()}", f"-DOPWRIGHT_PYTHON={sys.executable}")
        configure = ["cmake", "-S", str(source), "-B", str(build), *found, *options]
        make = ["cmake", "--build", str(build), "--parallel", os.environ.get("MAX_JOBS", "2")]
        for command in (configure, make):
            done = subprocess.run(
                command,
                check=False,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )
            if done.returncode != 0 or only_configure:
                break
        return done

    return run


@pytest.fixture(scope="session")
def dynamic() -> Dynamic:

    def dynamic(path: Path, kind: str) -> list[str]:
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".dynamic")
            assert isinstance(section, DynamicSection)
            return [str(getattr(tag, kind)) for tag in section.iter_tags() if hasattr(tag, kind)]

    return dynamic
