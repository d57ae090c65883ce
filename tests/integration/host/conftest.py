"""Bundles of a small model, changes to a copy of one, and the host's reaction to it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytest
import torch
from PIL import Image

from opwright.host.install import host_program, install_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.integration.conftest import BuildOnce, Shipped

    # Runs the host in a way that the fixture of this type describes.
    Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[3]
HOST = ROOT / "src/opwright/host/cpp"
TORCH = Path(torch.__file__).parent
# The numbers are defined in one place, which is not here.
CODES = {
    int(number): name
    for name, number in re.findall(
        r"^    (\w+) = (\d+),$", (HOST / "include/opwright/host/error.h").read_text(), flags=re.MULTILINE
    )
}

# Inputs of the model, and a request whose files contain them.
IMAGE = np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)
SHIFT = np.array([0.5, 0, -0.5], dtype=np.float32)
REQUEST = '{"inputs": {"image": "image.npy", "shift": "shift.npy"}}'


@dataclass(frozen=True)
class Outcome:
    """What the host did with a bundle: `loaded`, or the name of its exit code and its error line."""

    code: str
    message: str


@dataclass(frozen=True)
class Bundle:
    """A copy of a bundle that tests may change."""

    path: Path

    @property
    def manifest(self) -> Any:
        return json.loads((self.path / "manifest.json").read_text())

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.path.rglob("*") if path.is_file())

    def say(self, change: Callable[[Any], object]) -> None:
        """Change the manifest, and update its digest to match."""
        manifest = self.manifest
        change(manifest)
        self.write(json.dumps(manifest, indent=2).encode())

    def write(self, text: bytes) -> None:
        (self.path / "manifest.json").write_bytes(text)
        digest = hashlib.sha256(text).hexdigest()
        (self.path / "manifest.sha256").write_text(f"{digest}  manifest.json\n")

    def put(self, name: str, content: bytes) -> None:
        """Write a file, and list it in the manifest."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Create a new file, because a process that has loaded the old one still maps it.
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        facts = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self.say(lambda manifest: manifest["files"].update({name: facts}))

    def put_model(self, model: torch.nn.Module) -> None:
        """Replace the TorchScript model."""
        buffer = io.BytesIO()
        torch.jit.save(torch.jit.script(model), buffer)
        self.put("model.pt", buffer.getvalue())

    def remove(self, name: str) -> None:
        """Remove a file, any folders left empty, and its entry in the manifest."""
        path = self.path / name
        path.unlink()
        for folder in path.parents:
            if folder == self.path or list(folder.iterdir()):
                break
            folder.rmdir()
        self.say(lambda manifest: manifest["files"].pop(name))

    def add_library(self, name: str, content: bytes, **said: object) -> None:
        """Add another library, with the manifest entry of the first one except for `said`."""
        self.put(name, content)
        self.say(lambda manifest: manifest["libraries"].append({**manifest["libraries"][0], "file": name, **said}))


class Host(Protocol):
    """Runs the host's program until it exits, which must not be by a signal."""

    def __call__(self, *words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]: ...


class Refused(Protocol):
    """Runs the host's program, which must refuse in one line. Verifies the bundle by default."""

    def __call__(self, bundle: Bundle | Path, *words: str | Path) -> Outcome: ...


class Compiled(Protocol):
    """Builds a program from C++ files in `host/cpp/` as one translation unit, to read shared headers once."""

    def __call__(self, name: str, sources: Iterable[str | Path], *more: str | Path) -> Path: ...


class Loads(Protocol):
    """Loads a bundle in a process that loads many."""

    def __call__(self, folder: Path) -> Outcome: ...


@pytest.fixture(scope="session")
def torchscript(shipped: Shipped) -> Path:
    """The bundle of tests/packages/blended; must not be changed."""
    return shipped("blended", "torchscript")


@pytest.fixture(scope="session")
def aoti(shipped: Shipped) -> Path:
    """The same model as a package."""
    return shipped("blended", "aoti")


@pytest.fixture(params=["torchscript", "aoti"])
def any_bundle(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.getfixturevalue(request.param)
    return folder


@pytest.fixture
def bundle(torchscript: Path, tmp_path: Path) -> Bundle:
    """A copy of the bundle."""
    return Bundle(Path(shutil.copytree(torchscript, tmp_path / "bundle")))


@pytest.fixture
def package(aoti: Path, tmp_path: Path) -> Bundle:
    """A copy of the bundle with a package."""
    return Bundle(Path(shutil.copytree(aoti, tmp_path / "package")))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with inputs that fit the bundle: image.npy, shift.npy, both.npz and photo.jpg."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    np.save(folder / "image.npy", IMAGE)
    np.save(folder / "shift.npy", SHIFT)
    np.savez(folder / "both.npz", image=IMAGE, shift=SHIFT)
    Image.linear_gradient("L").resize((24, 20)).convert("RGB").save(folder / "photo.jpg")
    return folder


@pytest.fixture
def fitting(files: Path) -> list[str]:
    """Arguments with inputs that fit the model."""
    return [f"--input=image={files}/image.npy", f"--input=shift={files}/shift.npy"]


@pytest.fixture(scope="session")
def program() -> Path:
    return host_program()


@pytest.fixture(scope="session")
def codes() -> dict[str, int]:
    """Exit codes by name."""
    return {name: number for number, name in CODES.items()}


@pytest.fixture(scope="session")
def host(program: Path) -> Host:
    def host(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run([program, *words], input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode >= 0, f"signal {-done.returncode}: {done.stderr}"
        return done

    return host


@pytest.fixture(scope="session")
def refused(host: Host) -> Refused:
    def refused(bundle: Bundle | Path, *words: str | Path) -> Outcome:
        done = host(bundle.path if isinstance(bundle, Bundle) else bundle, *(words or ("--verify",)))
        line = re.fullmatch(r"host: ([^\n]+)\n", done.stderr)
        assert line, done.stderr
        return Outcome(CODES[done.returncode], line[1])

    return refused


@pytest.fixture(scope="session")
def compiled(build_once: BuildOnce) -> Compiled:
    flags: list[str | Path] = [
        *("-std=c++20", "-g1", "-I", HOST, "-I", HOST / "include", "-isystem", TORCH / "include"),
        *("-isystem", TORCH / "include/torch/csrc/api/include", f"-L{TORCH / 'lib'}", f"-Wl,-rpath,{TORCH / 'lib'}"),
    ]
    libraries = ("-Wl,--as-needed", "-ltorch_cpu", "-lc10", "-lcrypto")

    def compiled(name: str, sources: Iterable[str | Path], *more: str | Path) -> Path:
        def make(folder: Path) -> None:
            whole = folder / "whole.cpp"
            whole.write_text("".join(f'#include "{HOST / source}"\n' for source in sources))
            command: list[str | Path] = ["g++", whole, "-o", folder / name, *flags, *more, *libraries]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

        return build_once(name, make) / name

    return compiled


@pytest.fixture(scope="session")
def replay(compiled: Compiled) -> Path:
    """All of the host except its `main`, built with sanitizers; it reads inputs of every kind."""
    rooms = [sorted((HOST / room).glob("*.cpp")) for room in ("bundle", "engine", "model", "program", "tests/fuzz")]
    left_out = {"main.cpp", "last_words.cpp", "libfuzzer.cpp"}
    sources = [source for room in rooms for source in room if source.name not in left_out]
    # With -O1, the compiler needs twice as long.
    flags = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
    return compiled("replay", sources, *flags, "-lturbojpeg", "-lpng", "-lminizip", "-lz")


@pytest.fixture(scope="session")
def loads_program(compiled: Compiled) -> Path:
    installed = install_host()
    library = (f"-L{installed / 'lib'}", f"-Wl,-rpath,{installed / 'lib'}", "-lopwright_host")
    return compiled("loads", ["tests/loads.cpp"], "-I", installed / "include", *library)


@pytest.fixture(scope="session")
def loads(loads_program: Path) -> Iterator[Loads]:
    with subprocess.Popen([loads_program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, answered = process.stdin, process.stdout
        assert asked
        assert answered

        def loads(folder: Path) -> Outcome:
            print(folder, file=asked, flush=True)
            answer = answered.readline().removesuffix("\n")
            assert answer, "the process has ended"
            code, _, message = answer.partition(" ")
            return Outcome(code, message)

        yield loads
        asked.close()
        assert process.wait() == 0
