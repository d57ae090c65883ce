"""A self-contained bundle runs on a machine that has only the C library, and is rejected if it was changed."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from filelock import FileLock

from opwright.bundle.pack.self_contained import remove_search_path
from tests.integration.conftest import mapped_files
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.conftest import BuildOnce, Dynamic

pytestmark = pytest.mark.needs("chroot", "opencv")

ROOT = Path(__file__).parents[2]
FORMATS = ("torchscript", "aoti")
SAMPLES = 5
# What a machine must provide: the libraries of the C library.
C_LIBRARY = re.compile(r"ld-linux[-\w]*\.so\.\d|lib(c|m|mvec|dl|pthread|rt)\.so\.\d")
# A line of the dynamic linker's debug output.
TOLD = re.compile(r" +\d+:\t.*|")
REQUEST = '{"inputs": {"photograph": "/files/photograph_0.npy", "warp": "/files/warp_0.npy"}}\n'
# Runs in a separate process, because it loads operators and starts compilers.
SHIP = f"""
import json
import sys
from pathlib import Path

import numpy
import torch

import opwright

sys.path.insert(0, "{ROOT}/examples/models")
import surface

folder, ops = Path(sys.argv[1]), ["{ROOT}/ops/warp_perspective"]
opwright.open(*ops)
model, samples = surface.surface(), list(surface.samples())
for kind, load in (("torchscript", torch.jit.load), ("aoti", torch._inductor.aoti_load_package)):
    bundle, files = folder / kind / "bundle", folder / kind / "files"
    opwright.ship(
        model, ops, output=bundle, format=kind, samples=samples, shapes=surface.shapes, self_contained=True
    )
    (file,) = bundle.glob("model.*")
    saved, requests = load(str(file)), []
    files.mkdir()
    for number, (photograph, warp) in enumerate(samples):
        numpy.save(files / f"photograph_{{number}}.npy", photograph.numpy())
        numpy.save(files / f"warp_{{number}}.npy", warp.numpy())
        inputs = {{"photograph": f"photograph_{{number}}.npy", "warp": f"warp_{{number}}.npy"}}
        requests.append(json.dumps({{"inputs": inputs, "output": f"output_{{number}}.npz"}}))
        with torch.no_grad():
            result = saved(photograph, warp)
        expected = result if isinstance(result, torch.Tensor) else result[0]
        numpy.save(folder / f"{{kind}}_{{number}}.npy", expected.numpy())
    (files / "requests.jsonl").write_text("\\n".join(requests))
"""


@dataclass(frozen=True)
class Bare:
    """A root folder with the C library, a bundle at `place`, and `files` with the inputs."""

    root: Path
    change_root: list[str]
    place: str = "bundle"

    @property
    def bundle(self) -> Path:
        return self.root / self.place

    def command(self, *arguments: str) -> list[str | Path]:
        return [*self.change_root, self.root, f"/{self.place}/run", *arguments]

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = self.command(*arguments)
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def ship(folder: Path) -> None:
    """Ship the bundle in both formats, each into a separate root folder; large files are stored once."""
    done = subprocess.run(
        [*python(), "-c", SHIP, folder],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, *others = (folder / kind / "bundle" for kind in FORMATS)
    for path in (path for path in (first / "host").rglob("*") if path.is_file()):
        for other in others:
            twin = other / path.relative_to(first)
            twin.unlink()
            twin.hardlink_to(path)
    for kind in FORMATS:
        add_c_library(folder / kind)


def add_c_library(root: Path) -> None:
    """Copy the libraries that the bundle needs from the machine, and check that they are the C library."""
    bundle = root / "bundle"
    objects = [bundle / "run", bundle / "host" / "bin" / "opwright-host", *(bundle / "lib").iterdir()]
    where_it_looks = {**os.environ, "LD_LIBRARY_PATH": str(bundle / "host" / "lib")}
    told = subprocess.run(
        ["/usr/bin/ldd", *objects], env=where_it_looks, check=True, capture_output=True, text=True
    ).stdout
    assert "not found" not in told
    for path in {Path(found) for found in re.findall(r"^\t(?:\S+ => )?(/\S+) \(", told, re.MULTILINE)}:
        if path.is_relative_to(root):
            continue
        assert C_LIBRARY.fullmatch(path.name), path
        copy = root / path.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


@pytest.fixture(scope="session")
def shipped(build_once: BuildOnce, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with a root folder for each format: half a gigabyte, removed by the last test process."""
    lock = FileLock(tmp_path_factory.getbasetemp().parent / "self_contained_users.lock")
    with lock:
        folder = build_once("self_contained", ship)
        mark = folder / f"user_{os.getpid()}"
        mark.touch()
    yield folder
    with lock:
        mark.unlink()
        if not list(folder.glob("user_*")):
            shutil.rmtree(folder)


@pytest.fixture
def self_contained(shipped: Path) -> Iterator[Path]:
    """The same folder for one test at a time, because some tests damage it temporarily."""
    with FileLock(shipped / "lock"):
        yield shipped


@pytest.fixture
def bare(self_contained: Path, change_root: list[str]) -> Bare:
    """The TorchScript bundle."""
    return Bare(self_contained / "torchscript", change_root)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_bundle_returns_on_a_bare_machine_what_python_returns(
    self_contained: Path, change_root: list[str], kind: str
) -> None:
    machine = Bare(self_contained / kind, change_root)
    assert not {"proc", "tmp", "dev", "usr"} & {path.name for path in machine.root.iterdir()}
    done = machine.run("--requests", "/files/requests.jsonl")
    assert done.returncode == 0, done.stderr
    for number in range(SAMPLES):
        expected = torch.from_numpy(np.load(self_contained / f"{kind}_{number}.npy"))
        (found,) = np.load(machine.root / "files" / f"output_{number}.npz").values()
        # Compiled code is the same here; PyTorch's own kernels may sum in another order.
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-5, atol=1e-5)


def test_a_bundle_verifies_itself_on_a_bare_machine(bare: Bare) -> None:
    done = bare.run("--verify")
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "/bundle is OK"), done.stderr


def mapped_at_rest(pid: int) -> str:
    """The mappings of a process after it has loaded its operators and is waiting for standard input."""
    until, last, still = time.monotonic() + 60, ("", [""]), 0
    while time.monotonic() < until:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        now = (Path(f"/proc/{pid}/maps").read_text(), fields[10:12])  # its CPU time
        still = still + 1 if now == last and state == "S" and "/opencv.so" in now[0] else 0
        if still == 20:
            return now[0]
        last = now
        time.sleep(0.01)
    pytest.fail(f"process {pid} did not come to its requests in a minute")


def mapped_by(bare: Bare, **environment: str) -> set[str]:
    """The names of all files mapped by a run on one request, read from outside because the root has no /proc."""
    with subprocess.Popen(
        bare.command("--requests", "-", "--json", "-"),
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as started:
        try:
            mapped = mapped_at_rest(started.pid)
            answers, _ = started.communicate(REQUEST)
        finally:
            started.kill()
    assert started.returncode == 0
    assert json.loads(answers.splitlines()[0])
    return {Path(path).name for path in re.findall(r" (/\S+)$", mapped, re.MULTILINE)}


def test_the_process_maps_no_libpython_and_this_test_would_detect_it(bare: Bare, libpython: Path) -> None:
    mapped = mapped_by(bare)
    assert {"opwright-host", "libtorch_cpu.so", "opencv.so", "libc.so.6"} <= mapped
    assert not [name for name in mapped if "python" in name]
    shutil.copy(libpython, bare.root / "files")
    assert mapped_by(bare, LD_PRELOAD="/files/libpython3.so") - mapped == {"libpython3.so"}


def opened_and_said(bare: Bare) -> tuple[int, set[str], list[str]]:
    """The exit code of a run, the names of the files that the dynamic linker loaded, and the error lines."""
    done = bare.run("--requests", "/files/requests.jsonl", LD_DEBUG="files")
    said = [line for line in done.stderr.splitlines() if not TOLD.fullmatch(line)]
    return done.returncode, mapped_files(done.stderr), said


@contextmanager
def one_bit_flipped(path: Path) -> Iterator[None]:
    """Flip one bit in the middle of the file, temporarily."""

    def flip() -> None:
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            (byte,) = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    flip()
    try:
        yield
    finally:
        flip()


@pytest.mark.parametrize(
    "name",
    [
        "host/lib/libc10.so",
        "host/lib/libstdc++.so.6",
        "host/bin/opwright-host",
        "manifest.json",
        "manifest.sha256",
    ],
)
def test_one_flipped_bit_is_rejected_before_any_changed_file_is_loaded(bare: Bare, name: str) -> None:
    with one_bit_flipped(bare.bundle / name):
        code, opened, said = opened_and_said(bare)
    assert code == 26
    assert all(map(C_LIBRARY.fullmatch, opened))
    assert len(said) == 1
    told = "manifest.json" if name.startswith("manifest") else name
    assert said[0].startswith(f"host: {told} of the bundle /bundle ")


@contextmanager
def moved(bare: Bare, folder: str) -> Iterator[Bare]:
    """Move the bundle to a new folder, temporarily."""
    there = replace(bare, place=f"{folder}/bundle")
    there.bundle.parent.mkdir(parents=True)
    bare.bundle.rename(there.bundle)
    try:
        yield there
    finally:
        there.bundle.rename(bare.bundle)
        shutil.rmtree(bare.root / Path(folder).parts[0])


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["a:b", "a;b c", "$HOME", ":", "$x:/usr/lib"])
def test_a_bundle_loads_its_own_libraries_whatever_its_path_is(bare: Bare, name: str) -> None:
    with moved(bare, name) as there:
        code, opened, said = opened_and_said(there)
    assert code == 0, said
    assert {"libc10.so", "libtorch_cpu.so", "libgomp.so.1", "libstdc++.so.6", "opencv.so"} <= opened


def test_a_path_that_the_loader_would_expand_is_rejected_in_one_line(bare: Bare) -> None:
    with moved(bare, "$ORIGIN") as there:
        done = there.run("--verify")
    assert done.returncode == 31
    assert re.fullmatch(r"host: library /\$ORIGIN/\S+ does not load: its path contains \$ORIGIN, .*\n", done.stderr)


def test_the_users_libraries_do_not_come_before_the_bundles_own(bare: Bare) -> None:
    stranger = bare.root / "files" / "stranger"
    stranger.mkdir()
    try:
        for library in (bare.bundle / "host" / "lib").iterdir():
            (stranger / library.name).write_bytes(b"no library")
        done = bare.run("--requests", "/files/requests.jsonl", LD_LIBRARY_PATH="/files/stranger")
    finally:
        shutil.rmtree(stranger)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_library_of_a_bundle_has_the_search_path_of_its_build(bare: Bare, dynamic: Dynamic) -> None:
    libraries = [*(bare.bundle / "host" / "lib").iterdir(), *(bare.bundle / "lib").iterdir()]
    for library in libraries:
        assert dynamic(library, "runpath") + dynamic(library, "rpath") == [], library
    assert dynamic(bare.bundle / "host" / "bin" / "opwright-host", "rpath") == ["$ORIGIN/../lib"]


def test_a_search_path_is_removed_from_a_library_that_still_loads(tmp_path: Path, dynamic: Dynamic) -> None:
    for number, flags in enumerate(("", "-Wl,-rpath,/build/of:nobody", "-Wl,--disable-new-dtags,-rpath,/build")):
        library = tmp_path / f"{number}.so"
        command: list[str | Path] = ["c++", "-shared", "-fPIC", "-o", library, "-x", "c++", "-", *flags.split()]
        subprocess.run(command, input='extern "C" int answer() { return 42; }', text=True, check=True)
        needed = dynamic(library, "needed")
        library.chmod(0o444)
        remove_search_path(library)
        assert dynamic(library, "runpath") + dynamic(library, "rpath") == []
        assert dynamic(library, "needed") == needed
        assert ctypes.CDLL(str(library)).answer() == 42


def test_a_missing_library_and_an_unexpected_one_are_rejected_before_any_is_loaded(bare: Bare) -> None:
    library, elsewhere = bare.bundle / "host" / "lib" / "libz.so.1", bare.root / "files" / "libz.so.1"
    library.rename(elsewhere)
    try:
        missing = opened_and_said(bare)
        shutil.copy(elsewhere, library)
        stranger = Path(shutil.copy(elsewhere, library.with_name("libother.so.1")))
        unexpected = opened_and_said(bare)
        stranger.unlink()
    finally:
        elsewhere.rename(library)
    for (code, opened, said), expected, message in (
        (missing, 24, "host/lib/libz.so.1 of the bundle /bundle is missing; was the bundle copied completely?"),
        (unexpected, 25, "host/lib/libother.so.1 of the bundle /bundle is not in its manifest; expected only "),
    ):
        assert code == expected
        assert all(map(C_LIBRARY.fullmatch, opened))
        assert len(said) == 1
        assert said[0].startswith(f"host: {message}")


def test_verify_detects_a_changed_launcher(bare: Bare) -> None:
    verify = [sys.executable, "-m", "opwright", "verify", str(bare.bundle)]
    with one_bit_flipped(bare.bundle / "run"):
        done = subprocess.run(verify, check=False, capture_output=True, text=True)
    assert done.returncode == 26
    assert re.fullmatch(rf"host: run of the bundle {bare.bundle} has the SHA-256 \w+\.\.\.; .*\n", done.stderr)
