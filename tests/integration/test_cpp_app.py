"""The C++ application runs saved models with custom operators without Python; each failure is one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tests.integration.conftest import mapped_files, write
from tests.interpreter import python

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce, Cmake, Dynamic

pytestmark = [pytest.mark.needs("cmake", "opencv"), pytest.mark.sample(of="long", by="file")]

ROOT = Path(__file__).parents[2]
# The unchanged application in a project that drops libraries without calls, and further libraries.
PROJECT = f"""
cmake_minimum_required(VERSION 3.18)
project(test_cpp_app LANGUAGES CXX)
set(CMAKE_EXE_LINKER_FLAGS "-Wl,--as-needed")
add_subdirectory("{ROOT}/examples/cpp_app" app)
opwright_add_library(pair SOURCES pair.cpp)
opwright_add_library(classic SOURCES classic.cpp)
"""
PAIR = """
#include <opwright/op.h>
int64_t twice(int64_t x) { return 2 * x; }
OPWRIGHT_LIBRARY(pair, m) { m.def("twice", OPWRIGHT_FN(twice)); }
"""
CLASSIC = """
#include <ATen/core/Tensor.h>
#include <torch/library.h>
at::Tensor negated(const at::Tensor& x) { return -x; }
TORCH_LIBRARY(classic, m) { m.def("negated", &negated); }
"""
# In a separate process, because a namespace stays registered for the lifetime of a process.
MODELS = """
import sys
import torch
from torch import Tensor

for library in sys.argv[1:]:
    torch.ops.load_library(library)

def warped(x: Tensor, y: Tensor) -> Tensor:
    if bool(x[0][0] == 42):
        z = 5
    else:
        z = 10
    x = torch.ops.opencv.warp_perspective(x, torch.eye(3), 8, 8)
    return (x.matmul(y) + z).relu()

def doubled(x: Tensor, n: int) -> Tensor:
    return torch.ops.classic.negated(x) * torch.ops.pair.twice(n)

def nested(x: Tensor, y: Tensor):
    return [x, x + 1], (y, x)

def a_dict(x: Tensor, y: Tensor):
    return {"x": x}

def raises(x: Tensor, y: Tensor) -> Tensor:
    if x.dim() == 2:
        raise ValueError("x is\\nflat")
    return x

torch.manual_seed(0)
x, y = torch.randn(4, 8), torch.randn(8, 5)
x42 = x.clone()
x42[0][0] = 42
for function in (warped, doubled, nested, a_dict, raises):
    torch.jit.script(function).save(f"{function.__name__}.pt")
torch.jit.trace(warped, (x, y)).save("traced.pt")
for model in ("warped", "traced"):
    for name, inputs in {"inputs": [x, y], "inputs_42": [x42, y]}.items():
        torch.save(inputs, f"{name}.pt")
        torch.save(torch.jit.load(f"{model}.pt")(*inputs), f"{model}_{name}.pt")
torch.save((x, 3), "tensor_and_int.pt")
torch.save([x], "one.pt")
torch.save([x, y, y], "three.pt")
torch.save([x, "y"], "text.pt")
torch.save([x, torch.randn(3, 3)], "wrong_shape.pt")
torch.save([x.half(), y], "half_precision.pt")
torch.save({"x": x}, "dict.pt")
"""


@dataclass(frozen=True)
class App:
    """The built programs, the libraries, and the models with their inputs."""

    build: Path
    models: Path

    @property
    def warp(self) -> Path:
        return self.build / "app" / "libwarp_perspective.so"

    @property
    def pair(self) -> Path:
        return self.build / "libpair.so"

    @property
    def classic(self) -> Path:
        return self.build / "libclassic.so"

    def __call__(self, program: str, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.build / "app" / program, *arguments],
            cwd=self.models,
            env={**os.environ, **env},
            check=False,
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="session")
def app(build_once: BuildOnce, cmake: Cmake) -> App:
    def make(folder: Path) -> None:
        write(folder, {"CMakeLists.txt": PROJECT, "pair.cpp": PAIR, "classic.cpp": CLASSIC})
        built = cmake(folder, folder / "build")
        assert built.returncode == 0, built.stdout
        models = folder / "models"
        models.mkdir(exist_ok=True)
        (models / "make.py").write_text(MODELS)
        made = App(folder / "build", models)
        subprocess.run([*python(), "make.py", made.warp, made.pair, made.classic], cwd=models, check=True)
        (models / "text_file.pt").write_text("not a model")
        model = (models / "warped.pt").read_bytes()
        (models / "cut_off.pt").write_bytes(model[: len(model) // 2])
        (models / "junk.so").write_text("not a library")
        (models / "folder").mkdir(exist_ok=True)
        for library in (made.warp, made.pair, made.classic):
            shutil.copy(library, models / f"other_{library.name}")

    folder = build_once("cpp_app", make)
    return App(folder / "build", folder / "models")


@pytest.mark.parametrize("inputs", ["inputs", "inputs_42"])
@pytest.mark.parametrize("model", ["warped", "traced"])
@pytest.mark.parametrize("way", ["linked", "opened"])
def test_a_model_computes_the_same_bits_in_cpp_as_in_python(
    app: App, tmp_path: Path, way: str, model: str, inputs: str
) -> None:
    out = tmp_path / "out.pt"
    library = ["--library", str(app.warp)] if way == "opened" else []
    done = app(f"run_{way}", f"{model}.pt", f"{inputs}.pt", "--output", out, *library)
    assert (done.returncode, done.stderr) == (0, "")
    expected = torch.load(app.models / f"{model}_{inputs}.pt", weights_only=True)
    result = torch.load(out, weights_only=True)
    assert result.shape == (8, 5)
    assert torch.equal(result, expected)
    assert list(tmp_path.iterdir()) == [out]


def test_control_flow_is_scripted_and_not_traced(app: App) -> None:
    def load(name: str) -> torch.Tensor:
        result = torch.load(app.models / f"{name}.pt", weights_only=True)
        assert isinstance(result, torch.Tensor)
        return result

    # Rows 4 to 7 of the warped image are empty, so they equal z, which is 5 if the corner is 42.
    assert load("warped_inputs")[4:].eq(10).all()
    assert load("warped_inputs_42")[4:].eq(5).all()


def test_several_libraries_of_both_abis_are_opened_together(app: App, tmp_path: Path) -> None:
    libraries = ("--library", app.pair, f"--library={app.classic}")
    done = app("run_opened", "doubled.pt", "tensor_and_int.pt", *libraries, "--output", tmp_path / "out.pt")
    assert (done.returncode, done.stderr) == (0, "")
    x, n = torch.load(app.models / "tensor_and_int.pt", weights_only=True)
    assert torch.equal(torch.load(tmp_path / "out.pt", weights_only=True), -x * 2 * n)


def test_a_linked_program_opens_further_libraries_and_reopens_the_linked_one(app: App) -> None:
    libraries = ("--library", app.pair, "--library", app.classic, "--library", app.warp)
    assert app("run_linked", "doubled.pt", "tensor_and_int.pt", *libraries).returncode == 0
    assert app("run_linked", "warped.pt", "inputs.pt", *libraries).returncode == 0


def test_lists_and_tuples_are_written_as_tuples(app: App, tmp_path: Path) -> None:
    done = app("run_opened", "nested.pt", "inputs.pt", "--output", tmp_path / "out.pt")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["Float [4, 8]", "Float [4, 8]", "Float [8, 5]", "Float [4, 8]"]
    x, y = torch.load(app.models / "inputs.pt", weights_only=True)
    (x_out, x_plus_one), (y_out, x_again) = torch.load(tmp_path / "out.pt", weights_only=True)
    assert torch.equal(x_out, x)
    assert torch.equal(x_plus_one, x + 1)
    assert torch.equal(y_out, y)
    assert torch.equal(x_again, x)


def test_repeat_prints_one_json_line_with_the_median(app: App) -> None:
    done = app("run_linked", "warped.pt", "inputs.pt", "--repeat", "7")
    shape, measured = done.stdout.splitlines()
    assert shape == "Float [8, 5]"
    found = json.loads(measured)
    assert found.keys() == {"runs", "median_ms"}
    assert found["runs"] == 7
    assert found["median_ms"] > 0


def test_help_is_not_a_failure(app: App) -> None:
    done = app("run_opened", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("", 2, "usage: MODEL.pt INPUTS.pt"),
        ("warped.pt", 2, "usage: MODEL.pt INPUTS.pt"),
        ("warped.pt inputs.pt more.pt", 2, "usage: MODEL.pt INPUTS.pt"),
        ("warped.pt inputs.pt --fast", 2, "'--fast' is unknown or lacks its value; usage: "),
        ("warped.pt inputs.pt --library", 2, "'--library' is unknown or lacks its value; usage: "),
        ("warped.pt inputs.pt --repeat 0", 2, "--repeat expects an integer of at least 1, not '0'"),
        ("warped.pt inputs.pt --repeat 9x", 2, "--repeat expects an integer of at least 1, not '9x'"),
        ("warped.pt inputs.pt --repeat 99999999999", 2, "an integer of at least 1, not '99999999999'"),
        ("nowhere.pt inputs.pt", 3, "model nowhere.pt does not exist"),
        ("folder inputs.pt", 3, "model folder is a folder"),
        ("warped.pt nowhere.pt", 3, "inputs nowhere.pt does not exist"),
        ("warped.pt inputs.pt --library nowhere.so", 3, "library nowhere.so does not exist"),
        ("text_file.pt inputs.pt", 4, "model text_file.pt cannot be read: .*not a ZIP archive"),
        ("cut_off.pt inputs.pt", 4, "model cut_off.pt cannot be read: .*failed finding central directory"),
        ("inputs.pt inputs.pt", 4, r"model inputs.pt cannot be read: .*constants\.pkl"),
        (
            "doubled.pt tensor_and_int.pt",
            5,
            r"model doubled\.pt needs the operator classic::negated, which no .*: pass its library .*add_library",
        ),
        ("warped.pt text_file.pt", 6, "inputs text_file.pt cannot be read: .*not a ZIP archive"),
        ("warped.pt cut_off.pt", 6, "inputs cut_off.pt cannot be read: "),
        ("warped.pt warped.pt", 6, "inputs warped.pt cannot be read: "),
        ("warped.pt dict.pt", 6, "inputs dict.pt contain one GenericDict; expected a list with one entry per argument"),
        ("warped.pt one.pt", 7, r"do not fit the model: forward\(\) is missing value for argument 'y'"),
        ("warped.pt three.pt", 7, r"do not fit the model: Expected at most 3 argument\(s\)"),
        ("warped.pt text.pt", 7, "do not fit the model: .*type 'Tensor' for argument 'y' but instead found type 'str'"),
        ("warped.pt inputs.pt --library junk.so", 8, r"library junk\.so does not load: .*junk\.so"),
        # Their namespace is taken by a linked library, or by one that was opened before.
        (
            "warped.pt inputs.pt --library other_libwarp_perspective.so",
            9,
            r"library other_libwarp_perspective\.so was refused: the namespace 'opencv' .* is taken",
        ),
        (
            "warped.pt inputs.pt --library ../build/libpair.so --library other_libpair.so",
            9,
            r"library other_libpair\.so was refused: the namespace 'pair' .* is taken",
        ),
        # Here, PyTorch would terminate the program.
        (
            "warped.pt inputs.pt --library ../build/libclassic.so --library other_libclassic.so",
            9,
            r"library other_libclassic\.so was refused: Only a single TORCH_LIBRARY .* namespace classic",
        ),
        ("warped.pt wrong_shape.pt", 10, r"the model failed .*shapes cannot be multiplied \(8x8 and 3x3\)"),
        ("warped.pt half_precision.pt", 10, "the model failed .*image must be .*, got float16"),
        ("raises.pt inputs.pt", 10, "the model failed .*ValueError: x is$"),
        (
            "a_dict.pt inputs.pt --output out.pt",
            11,
            "the model returned one GenericDict, which cannot be written: return",
        ),
        ("warped.pt inputs.pt --output nowhere/out.pt", 11, r"output nowhere/out\.pt cannot be written"),
        ("warped.pt inputs.pt --output folder", 11, "output folder cannot be written"),
    ],
)
def test_bad_input_prints_one_line_and_returns_an_exit_code(
    app: App, arguments: str, exit_code: int, message: str
) -> None:
    before = sorted(app.models.rglob("*"))
    done = app("run_linked", *arguments.split())
    assert re.fullmatch(f"run_linked: .*{message}.*\n", done.stderr), done.stderr
    assert not re.search(r"terminate|frame #|Traceback|what\(\)", done.stderr)
    assert done.returncode == exit_code
    assert sorted(app.models.rglob("*")) == before


def test_the_linked_library_is_kept_under_a_global_as_needed(app: App, dynamic: Dynamic) -> None:
    assert "libwarp_perspective.so" in dynamic(app.build / "app" / "run_linked", "needed")
    assert "libwarp_perspective.so" not in dynamic(app.build / "app" / "run_opened", "needed")


def mapped_by(app: App, log: Path, *libraries: Path) -> set[str]:
    options = [word for library in libraries for word in ("--library", library)]
    done = app("run_opened", "warped.pt", "inputs.pt", *options, LD_DEBUG="files", LD_DEBUG_OUTPUT=str(log))
    assert done.returncode == 0, done.stderr
    (written,) = log.parent.glob(f"{log.name}.*")
    return mapped_files(written.read_text())


def test_the_process_maps_no_libpython_and_this_test_would_detect_it(app: App, tmp_path: Path, libpython: Path) -> None:
    mapped = mapped_by(app, tmp_path / "without", app.warp)
    assert {"libtorch_cpu.so", "libwarp_perspective.so"} <= mapped
    assert not [name for name in mapped if "python" in name]
    mapped = mapped_by(app, tmp_path / "with", app.warp, libpython)
    assert [name for name in mapped if "python" in name] == ["libpython3.so"]


def test_no_cuda_compiler_or_toolkit_is_required(app: App) -> None:
    assert "CMAKE_CUDA_COMPILER" not in (app.build / "CMakeCache.txt").read_text()
