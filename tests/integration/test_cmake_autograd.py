"""opwright::autograd: a C++ program that trains through native backwards, without Python."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import write
from tests.interpreter import python

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce, Cmake, Dynamic

pytestmark = [pytest.mark.needs("cmake"), pytest.mark.sample(of="long", by="file")]

GRADIENTS = Path(__file__).parents[1] / "packages" / "gradients"
PROJECT = f"""
cmake_minimum_required(VERSION 3.18)
project(test_cmake_autograd LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_EXE_LINKER_FLAGS "-Wl,--as-needed")
find_package(opwright REQUIRED)
opwright_add_library(gradients "{GRADIENTS}")

# One object for all programs, because PyTorch's headers are slow to compile.
add_library(main OBJECT main.cpp)
target_link_libraries(main PRIVATE opwright::torch)
foreach(program linked linked_first opened without)
  add_executable(${{program}} $<TARGET_OBJECTS:main>)
endforeach()
target_link_libraries(linked PRIVATE opwright::torch gradients opwright::autograd)
target_link_libraries(linked_first PRIVATE opwright::torch opwright::autograd gradients)
target_link_libraries(opened PRIVATE opwright::torch opwright::autograd ${{CMAKE_DL_LIBS}})
target_link_libraries(without PRIVATE opwright::torch gradients)
"""
MAIN = r"""
#include <dlfcn.h>
#include <torch/script.h>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

extern "C" __attribute__((weak)) const char* opwright_attach_gradients();

int main(int argc, char** argv) {
    try {
        if (argc == 3) {
            if (dlopen(argv[2], RTLD_NOW) == nullptr) throw std::runtime_error(dlerror());
            if (const char* error = opwright_attach_gradients()) throw std::runtime_error(error);
        }
        torch::jit::Module model = torch::jit::load(argv[1]);
        for (int epoch = 0; epoch < 3; ++epoch) {
            const at::Tensor x = at::arange(1, 5, at::kDouble).set_requires_grad(true);
            const at::Tensor y = at::arange(3, 7, at::kDouble).set_requires_grad(true);
            model.forward({x, y}).toTensor().sum().backward();
            for (const at::Tensor& grad : {x.grad(), y.grad()})
                for (int i = 0; i < 4; ++i) std::printf("%.17g ", grad[i].item<double>());
        }
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            if (line.find("libpython") != std::string::npos) std::printf("python is here");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
"""
MODEL = """
import sys
from typing import List
import opwright
import torch
from torch import Tensor

ops = opwright.open(sys.argv[1]).ops

class Model(torch.nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        product = torch.ops.gradients.mul(x, y)
        plane = torch.ops.gradients.affine(product, y, None, 0.5, "minus", [1, 2])
        sine, cosine = torch.ops.gradients.sin_cos(plane)
        terms: List[Tensor] = [x, sine]
        some = torch.ops.gradients.sum_of_given([x, None], x)
        sigmoid = torch.ops.gradients.sigmoid(some)
        return torch.ops.gradients.weighted_sum(terms, y) + torch.ops.gradients.cube(sigmoid, factor=2.0)

model = torch.jit.script(Model())
model.save(sys.argv[2])
for _ in range(3):
    x = torch.arange(1, 5, dtype=torch.float64, requires_grad=True)
    y = torch.arange(3, 7, dtype=torch.float64, requires_grad=True)
    model(x, y).sum().backward()
    print(*x.grad.tolist(), *y.grad.tolist())
"""


@pytest.fixture(scope="module")
def project(build_once: BuildOnce, cmake: Cmake) -> Path:
    """A folder with the programs in `build`, a model, and its gradients in Python in `expected`."""

    def make(folder: Path) -> None:
        write(folder, {"CMakeLists.txt": PROJECT, "main.cpp": MAIN, "model.py": MODEL})
        built = cmake(folder, folder / "build")
        assert built.returncode == 0, built.stdout
        assert "warning" not in built.stdout
        command: list[str | Path] = [*python(), folder / "model.py", GRADIENTS, folder / "model.pt"]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        (folder / "expected").write_text(ran.stdout)

    return build_once("cmake_autograd", make)


def run(project: Path, program: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [project / "build" / program, project / "model.pt", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("program", ["linked", "linked_first", "opened"])
def test_a_program_without_python_computes_the_same_gradients_as_python(project: Path, program: str) -> None:
    library = [project / "build" / "libgradients.so"] if program == "opened" else []
    done = run(project, program, *library)
    assert (done.returncode, done.stderr) == (0, "")
    expected = (project / "expected").read_text().split()
    assert len(expected) == 24
    assert [float(number) for number in done.stdout.split()] == [float(number) for number in expected]


def test_the_bridge_is_kept_under_a_global_as_needed(project: Path, dynamic: Dynamic) -> None:
    assert "libopwright_autograd.so" in dynamic(project / "build" / "linked", "needed")
    assert list((project / "build").rglob("libopwright_autograd.so"))  # test_cmake.py asserts that another has none


def test_without_the_bridge_there_are_no_gradients(project: Path) -> None:
    done = run(project, "without")
    assert done.returncode == 1
    assert "gradients::" in done.stderr


def test_a_project_without_cpp_finds_opwright(tmp_path: Path, cmake: Cmake) -> None:
    text = "cmake_minimum_required(VERSION 3.18)\nproject(p LANGUAGES NONE)\nfind_package(opwright REQUIRED)"
    (tmp_path / "CMakeLists.txt").write_text(text)
    built = cmake(tmp_path, tmp_path / "build")
    assert built.returncode == 0, built.stdout
