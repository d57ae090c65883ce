"""The application that links the host: found by CMake with and without Python, and the library's exported symbols."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn

import opwright
from opwright.host.install import install_host
from tests.integration.conftest import mapped_files, write_program

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce, Cmake

pytestmark = [pytest.mark.needs("cmake"), pytest.mark.sample(of="long", by="file")]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "host_app"
TIMED = ROOT / "tests" / "packages" / "timed"
# What the public headers declare, and the type information of the exception, which catching it requires.
DECLARED = re.compile(
    r"opwright::(Model|Error)::.*|opwright::name_of\(.*|(typeinfo|typeinfo name|vtable) for opwright::Error"
)
# Links the compiled object of the application, because PyTorch's headers take long to compile.
LINKS = """
cmake_minimum_required(VERSION 3.18)
project(links LANGUAGES CXX)
find_package(opwright_host REQUIRED)
add_executable(app "${OBJECT}")
set_target_properties(app PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(app PRIVATE opwright::host)
"""
ASKS_FOR_VERSIONS = """
cmake_minimum_required(VERSION 3.18)
project(asks LANGUAGES NONE)
foreach(version IN LISTS VERSIONS)
  unset(opwright_host_DIR CACHE)
  find_package(opwright_host ${version} QUIET)
  message(STATUS "${version}: ${opwright_host_FOUND}")
endforeach()
"""


class Mixed(nn.Module):
    """Returns two outputs, computed with an operator of the library `timed`."""

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        mixed = torch.ops.timed.mixed(image, image)
        return mixed, mixed.flatten(1)


@dataclass(frozen=True)
class App:
    """A folder with the application in `app`, a bundle in `bundle`, and a copy with one bit flipped in `changed`."""

    folder: Path

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "app" / "app", *arguments],
            cwd=self.folder,
            env={**os.environ, **environment},
            check=False,
            capture_output=True,
            text=True,
        )

    def mapped(self, **environment: str) -> set[str]:
        done = self("bundle", LD_DEBUG="files", **environment)
        assert done.returncode == 0, done.stderr
        return mapped_files(done.stderr)


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed host, moved to another folder."""
    return Path(shutil.copytree(install_host(), tmp_path_factory.mktemp("moved") / "prefix"))


@pytest.fixture(scope="session")
def app(build_once: BuildOnce, cmake: Cmake) -> App:
    def make(folder: Path) -> None:
        built = cmake(EXAMPLE, folder / "app")
        assert built.returncode == 0, built.stdout
        opwright.ship(
            Mixed(),
            [TIMED],
            output=folder / "bundle",
            samples=[torch.rand(3, 2, 5)],
            shapes={"image": "2..8,2,5"},
        )
        changed = Path(shutil.copytree(folder / "bundle", folder / "changed")) / "model.pt"
        model = bytearray(changed.read_bytes())
        model[len(model) // 2] ^= 1
        changed.write_bytes(model)

    return App(build_once("host_app", make))


def test_the_application_runs_a_bundle_with_operators(app: App) -> None:
    done = app("bundle")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "[2, 2, 5]\n[2, 10]\n")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("", 20, "the bundle  does not exist; expected a folder that `opwright ship` wrote"),
        ("nowhere", 20, "the bundle nowhere does not exist; expected a folder that `opwright ship` wrote"),
        ("changed", 26, r"model\.pt of the bundle changed has the SHA-256 \w+\.\.\.; expected \w+.*"),
    ],
)
def test_an_error_of_the_library_is_one_line_and_an_exit_code(
    app: App, arguments: str, exit_code: int, message: str
) -> None:
    done = app(*arguments.split())
    assert re.fullmatch(f"app: {message}\n", done.stderr), done.stderr
    assert (done.returncode, done.stdout) == (exit_code, "")


def test_the_process_maps_no_libpython_and_this_test_would_detect_it(app: App, libpython: Path) -> None:
    mapped = app.mapped()
    assert {"libopwright_host.so", "libtorch_cpu.so"} <= mapped
    assert not [name for name in mapped if "python" in name]
    assert app.mapped(LD_PRELOAD=str(libpython)) - mapped == {"libpython3.so"}


def defined_in(library: Path) -> list[str]:
    """Return the symbols that a shared object exports."""
    list_symbols = ["nm", "--dynamic", "--defined-only", "--demangle", str(library)]
    told = subprocess.run(list_symbols, check=True, capture_output=True, text=True)
    return [line.split(maxsplit=2)[2] for line in told.stdout.splitlines()]


def test_the_library_exports_only_what_its_headers_declare() -> None:
    shown = defined_in(install_host() / "lib" / "libopwright_host.so")
    assert not [symbol for symbol in shown if not DECLARED.fullmatch(symbol)]
    for name in ("Model::load", "Model::run", "Model::verify", "Model::inputs", "Model::outputs", "Error::Error"):
        assert [symbol for symbol in shown if symbol.startswith(f"opwright::{name}(")], name


def test_that_test_would_detect_another_symbol(app: App) -> None:
    (library,) = (app.folder / "bundle" / "lib").iterdir()
    assert [symbol for symbol in defined_in(library) if not DECLARED.fullmatch(symbol)]


def test_an_installed_host_works_from_another_folder_without_python(
    app: App, prefix: Path, cmake: Cmake, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(LINKS)
    (compiled,) = (app.folder / "app").rglob("main.cpp.o")
    python = write_program(tmp_path / "python", f"touch {tmp_path}/asked\nexit 1")
    options = (f"-DOPWRIGHT_PYTHON={python}", f"-DOBJECT={compiled}")
    built = cmake(tmp_path, tmp_path / "app", f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    assert built.returncode == 0, built.stdout
    ran = subprocess.run([tmp_path / "app" / "app", app.folder / "bundle"], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, app("bundle").stdout)
    assert not (tmp_path / "asked").exists()
    # Finding the host through opwright runs Python, which this test would detect.
    assert cmake(tmp_path, tmp_path / "other", *options, only_configure=True).returncode != 0
    assert (tmp_path / "asked").exists()


def test_an_installed_host_reports_its_version(prefix: Path, cmake: Cmake, tmp_path: Path) -> None:
    major, minor = map(int, opwright.__version__.split(".")[:2])
    (tmp_path / "CMakeLists.txt").write_text(ASKS_FOR_VERSIONS)
    versions = f"-DVERSIONS={major}.{minor};{major}.{minor + 1};{major + 1}"
    asked = cmake(tmp_path, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", versions, only_configure=True)
    assert re.findall(r"-- ([\d.]+): (\d)", asked.stdout) == [
        (f"{major}.{minor}", "1"),
        (f"{major}.{minor + 1}", "0"),
        (f"{major + 1}", "0"),
    ]


def test_an_installed_host_reports_that_its_pytorch_is_missing(prefix: Path, cmake: Cmake, tmp_path: Path) -> None:
    here = Path(torch.__file__).parent
    config = tmp_path / "prefix" / "opwright_hostConfig.cmake"
    config.parent.mkdir()
    installed = (prefix / "lib" / "cmake" / "opwright_host" / config.name).read_text()
    config.write_text(installed.replace(str(here), "/no/such/torch"))
    found = f"-Dopwright_host_DIR={config.parent}"
    asked = cmake(EXAMPLE, tmp_path / "build", found, only_configure=True)
    assert asked.returncode != 0
    said = " ".join(asked.stdout.split())
    assert (
        "this host was built for the PyTorch in /no/such/torch, which does not exist any more: build it again" in said
    )
