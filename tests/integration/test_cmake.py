"""find_package(opwright) and opwright_add_library, and plain find_package(Torch)."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.builder.plan import plan_sources
from opwright.builder.recipes import compose
from opwright.builder.symbols import needs_python
from tests.integration.conftest import write
from tests.interpreter import python

if TYPE_CHECKING:
    from tests.integration.conftest import BuildOnce, Cmake, Dynamic

pytestmark = pytest.mark.needs("cmake")

TUTORIAL_STYLE = Path(__file__).parents[1] / "packages" / "tutorial_style"

STABLE = """
#include <opwright/op.h>
int64_t twice(int64_t x) { return 2 * x; }
OPWRIGHT_LIBRARY(%s, m) { m.def("twice", OPWRIGHT_FN(twice)); }
"""
FULL = """
#include <torch/library.h>
int64_t twice(int64_t x) { return 2 * x; }
TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
"""
# Binds a Python module in addition to its operators, as sources of packages do.
BOTH = """
#include <Python.h>
#include <opwright/op.h>
int64_t twice(int64_t x) { return 2 * x; }
OPWRIGHT_LIBRARY(both, m) { m.def("twice", OPWRIGHT_FN(twice)); }
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "both", "", -1, nullptr, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_both() { return PyModule_Create(&module); }
"""
CALLS_PYTHON = """
#include <Python.h>
#include <opwright/op.h>
__attribute__((noinline)) int64_t length(int64_t x) { return x + PyList_Size(PyList_New(0)); }
OPWRIGHT_LIBRARY(calls, m) { m.def("length(int x) -> int", OPWRIGHT_FN(length)); }
"""
DESCRIBED = """
import opwright
library = opwright.Library("described", sources=["kernel.cpp"])

@library.op
def twice(x: int) -> int:
    return 2 * x
"""
KERNEL = """
#include <opwright/op.h>
int64_t twice(int64_t x) { return 2 * x; }
OPWRIGHT_IMPL(described, CompositeExplicitAutograd, m) { m.impl("twice", OPWRIGHT_FN(twice)); }
"""
# What a project requires: the first two numbers of the version.
SERIES = ".".join(opwright.__version__.split(".")[:2])
HEAD = "cmake_minimum_required(VERSION 3.18)\nproject(test_cmake LANGUAGES CXX)\n"
# Three programs that call no library: one links the target, one the file that it builds, one through a static library.
PROJECT = f"""{HEAD}
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_EXE_LINKER_FLAGS "-Wl,--as-needed")
find_package(opwright {SERIES} REQUIRED)

opwright_add_library(alone SOURCES alone.cpp)
opwright_add_library(whole SOURCES whole.cpp NAMESPACE named)
opwright_add_library(folder described)
opwright_add_library(both SOURCES both.cpp)
install(TARGETS alone DESTINATION lib)

add_executable(kept main.cpp)
target_link_libraries(kept PRIVATE opwright::torch alone whole folder both)
add_executable(lost main.cpp)
target_link_libraries(lost PRIVATE opwright::torch $<TARGET_FILE:alone>)
add_dependencies(lost alone)
add_library(between STATIC main.cpp)
target_link_libraries(between PRIVATE alone)
add_executable(through main.cpp)
target_link_libraries(through PRIVATE between opwright::torch)
"""
FILES = {
    "CMakeLists.txt": PROJECT,
    "alone.cpp": STABLE % "alone",
    "whole.cpp": FULL,
    "both.cpp": BOTH,
    "described/op.py": DESCRIBED,
    "described/kernel.cpp": KERNEL,
    "main.cpp": "int main() {}",
}


def in_python(library: Path, expression: str) -> str:
    """The value of `expression` in a new Python process that has loaded `library`."""
    script = f"import torch; torch.ops.load_library({str(library)!r}); print({expression})"
    return subprocess.run([*python(), "-c", script], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="session")
def project(build_once: BuildOnce, cmake: Cmake) -> Path:
    """The build folder of the project above, with a space in its name."""

    def make(folder: Path) -> None:
        built = cmake(write(folder, FILES), folder / "the build")
        assert built.returncode == 0, built.stdout

    folder = build_once("cmake", make)
    return folder / "the build"


@pytest.mark.parametrize(
    ("target", "call"),
    [("alone", "alone.twice"), ("whole", "named.twice"), ("folder", "described.twice"), ("both", "both.twice")],
)
def test_each_form_of_library_registers_its_operators(project: Path, target: str, call: str) -> None:
    assert in_python(project / f"lib{target}.so", f"torch.ops.{call}(21)") == "42"


def test_a_program_keeps_its_libraries_under_a_global_as_needed(project: Path, dynamic: Dynamic) -> None:
    assert {"libalone.so", "libwhole.so", "libfolder.so"} <= set(dynamic(project / "kept", "needed"))
    assert "libalone.so" in dynamic(project / "through", "needed")


def test_a_library_for_programs_omits_python_bindings(project: Path, dynamic: Dynamic) -> None:
    assert not needs_python(project / "libboth.so")
    assert "libtorch_python.so" not in dynamic(project / "libboth.so", "needed")


@pytest.mark.sample(of="CMake builds")
def test_operators_that_call_python_are_reported_at_link_time(tmp_path: Path, cmake: Cmake) -> None:
    text = f"{HEAD}find_package(opwright REQUIRED)\nopwright_add_library(calls SOURCES calls.cpp)"
    done = cmake(write(tmp_path, {"CMakeLists.txt": text, "calls.cpp": CALLS_PYTHON}), tmp_path / "build")
    assert done.returncode != 0
    assert "libcalls.so calls Python (PyList_New, PyList_Size), but a program without Python has neither" in done.stdout
    assert "calls.cpp.o: length(long) calls PyList_New" in done.stdout
    assert "Move the Python bindings to a separate source" in done.stdout


def test_a_project_that_does_not_link_the_bridge_for_gradients_does_not_build_it(project: Path) -> None:
    assert not list(project.rglob("libopwright_autograd.so"))


def test_plain_linking_loses_the_library_that_the_target_keeps(project: Path, dynamic: Dynamic) -> None:
    assert "libalone.so" not in dynamic(project / "lost", "needed")


def test_a_program_finds_its_libraries_when_it_runs(project: Path) -> None:
    assert subprocess.run([project / "kept"], check=False).returncode == 0
    assert subprocess.run([project / "through"], check=False).returncode == 0


def test_an_installed_library_contains_no_paths_of_the_build_machine(
    project: Path, tmp_path: Path, dynamic: Dynamic
) -> None:
    assert dynamic(project / "libalone.so", "runpath")
    install = ["cmake", "--install", str(project), "--prefix", str(tmp_path)]
    subprocess.run(install, check=True, capture_output=True)
    assert dynamic(tmp_path / "lib" / "libalone.so", "runpath") == []
    assert in_python(tmp_path / "lib" / "libalone.so", "torch.ops.alone.twice(4)") == "8"


@pytest.mark.parametrize(
    ("target", "source", "abi"), [("alone", "alone.cpp", "stable"), ("named", "whole.cpp", "full")]
)
def test_cmake_compiles_with_the_same_flags_as_python(project: Path, target: str, source: str, abi: str) -> None:
    plan = plan_sources(target, [project.parent / source], product="operators")
    assert plan.abi == abi
    (unit,) = compose(plan).units_of(plan)
    commands = json.loads((project / "compile_commands.json").read_text())
    (command,) = [shlex.split(entry["command"]) for entry in commands if entry["file"] == str(unit.source)]
    # In the same order, except the standard, which CMake writes last.
    standard, *flags = unit.command[1:]
    assert [word for word in command if word.startswith("-std=")] == [standard]
    at = 0
    for flag in flags:
        at = command.index(flag, at)
    assert ("-fvisibility=hidden" in command) == (abi == "stable")


@pytest.mark.sample(of="CMake builds")
def test_a_changed_op_py_configures_and_builds_again(tmp_path: Path, cmake: Cmake) -> None:
    write(
        tmp_path, {**FILES, "CMakeLists.txt": f"{HEAD}find_package(opwright)\nopwright_add_library(folder described)"}
    )
    built = cmake(tmp_path, tmp_path / "build")
    assert built.returncode == 0, built.stdout
    library = tmp_path / "build" / "libfolder.so"
    assert in_python(library, "torch.ops.described.twice.default._schema") == "described::twice(SymInt x) -> SymInt"
    edited = DESCRIBED.replace("x: int", "number: int").replace("2 * x", "2 * number")
    (tmp_path / "described" / "op.py").write_text(edited)
    rebuild = ["cmake", "--build", str(tmp_path / "build")]
    subprocess.run(rebuild, check=True, capture_output=True)
    assert in_python(library, "torch.ops.described.twice.default._schema") == (
        "described::twice(SymInt number) -> SymInt"
    )


@pytest.mark.sample(of="CMake builds")
@pytest.mark.needs("opencv")
def test_sources_of_both_styles_build_with_only_find_package_torch(tmp_path: Path) -> None:
    import torch

    text = f"""{HEAD}
        add_subdirectory("{TUTORIAL_STYLE}" tutorial_style)
        find_package(Torch REQUIRED)
        add_library(by_hand SHARED by_hand.cpp)
        target_compile_features(by_hand PRIVATE cxx_std_20)
        target_include_directories(by_hand PRIVATE "{opwright.include_path()}")
        target_link_libraries(by_hand PRIVATE ${{TORCH_LIBRARIES}})
    """
    write(tmp_path, {"CMakeLists.txt": text, "by_hand.cpp": STABLE % "by_hand"})
    build = tmp_path / "build"
    prefix = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
    for command in (["cmake", "-S", str(tmp_path), "-B", str(build), prefix], ["cmake", "--build", str(build)]):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if torch.version.cuda is not None and "cannot find the CUDA" in done.stderr:
            pytest.skip("PyTorch's CMake package requires the CUDA toolkit for a CUDA build, and it is not installed")
        assert done.returncode == 0, done.stdout + done.stderr
    assert in_python(build / "libby_hand.so", "torch.ops.by_hand.twice(21)") == "42"
    warped = "torch.ops.my_ops.warp_perspective(torch.ones(4, 8), torch.eye(3)).sum(1).tolist()"
    library = build / "tutorial_style" / "libtutorial_style.so"
    assert in_python(library, warped) == "[8.0, 8.0, 8.0, 8.0, 0.0, 0.0, 0.0, 0.0]"


@pytest.mark.sample(of="CMake builds")
@pytest.mark.needs("nvcc")
def test_nvcc_compiles_cuda_sources(tmp_path: Path, cmake: Cmake, dynamic: Dynamic) -> None:
    kernel = """
        #ifndef USE_CUDA
        #error "USE_CUDA is not defined"
        #endif
        #include <opwright/op.h>
        __global__ void nothing() {}
        int64_t launch(int64_t x) { nothing<<<1, 1>>>(); return x; }
        OPWRIGHT_LIBRARY(gpu, m) { m.def("launch", OPWRIGHT_FN(launch)); }
    """
    text = f"{HEAD}find_package(opwright REQUIRED)\nopwright_add_library(gpu SOURCES kernel.cu)"
    built = cmake(write(tmp_path, {"CMakeLists.txt": text, "kernel.cu": kernel}), tmp_path / "build")
    assert built.returncode == 0, built.stdout
    assert "warning" not in built.stdout
    needed = dynamic(tmp_path / "build" / "libgpu.so", "needed")
    # No function of libtorch.so is called, but it loads the CUDA part of PyTorch.
    assert "libtorch.so" in needed
    assert [name for name in needed if name.startswith("libcudart.so")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("folder", "opwright_add_library(folder): expected opwright_add_library(TARGET FOLDER"),
        ("folder described other", "opwright_add_library(folder;described;other): expected"),
        ("folder described PACKAGES opencv4", "expected opwright_add_library(TARGET FOLDER"),
        ("folder elsewhere", "elsewhere does not contain an operator library: expected an op.py"),
        ("alone SOURCES alone.c", "alone.c is neither C++ nor CUDA"),
        ("alone SOURCES nowhere.cpp", "nowhere.cpp does not exist"),
        ("alone SOURCES alone.cpp ABI newest", "abi='newest' is unknown: expected 'stable' or 'full'"),
        ("alone SOURCES alone.cpp PACKAGES no_such_thing", "the package 'no_such_thing' is not installed"),
        ("gpu SOURCES alone.cu", "$CUDA_HOME names /nowhere/bin/nvcc, which is not an executable program"),
    ],
)
def test_invalid_arguments_are_cmake_errors(tmp_path: Path, cmake: Cmake, call: str, message: str) -> None:
    text = f"{HEAD}find_package(opwright REQUIRED)\nopwright_add_library({call})"
    write(tmp_path, {**FILES, "CMakeLists.txt": text, "alone.cu": ""})
    done = cmake(tmp_path, tmp_path / "build", only_configure=True, CUDA_HOME="/nowhere", CUDACXX="")
    assert done.returncode != 0
    assert "CMake Error" in done.stdout
    assert message in " ".join(done.stdout.split())


def test_full_api_sources_are_rejected_for_another_pytorch_than_the_projects(tmp_path: Path, cmake: Cmake) -> None:
    text = f"""{HEAD}
        find_package(opwright REQUIRED)
        set(TORCH_INSTALL_PREFIX "/opt/other_torch")
        opwright_add_library(alone SOURCES alone.cpp)
        message(STATUS "the stable ABI is fine")
        opwright_add_library(whole SOURCES whole.cpp NAMESPACE named)
    """
    done = cmake(write(tmp_path, {**FILES, "CMakeLists.txt": text}), tmp_path / "build", only_configure=True)
    assert done.returncode != 0
    assert "the stable ABI is fine" in done.stdout
    assert "but this project found the one in /opt/other_torch" in " ".join(done.stdout.split())


def script(tmp_path: Path, text: str, *options: str) -> str:
    """CMake's output for a script, without a project or a compiler."""
    file = tmp_path / "script.cmake"
    file.write_text(f'list(APPEND CMAKE_PREFIX_PATH "{opwright.cmake_prefix_path()}")\n{text}\n')
    command = ["cmake", *options, "-P", str(file)]
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("version", "found"), [(SERIES, True), (opwright.__version__, True), ("0.1", False), ("0.9", False), ("1", False)]
)
def test_a_version_is_found_within_its_series(tmp_path: Path, version: str, found: bool) -> None:
    text = f'find_package(opwright {version})\nmessage("found: ${{opwright_FOUND}} ${{opwright_VERSION}}")'
    printed = script(tmp_path, text, f"-DOPWRIGHT_PYTHON={sys.executable}")
    assert (f"found: 1 {opwright.__version__}" in printed or f"found: TRUE {opwright.__version__}" in printed) == found


def test_without_a_python_that_has_opwright_the_error_lists_the_attempts(tmp_path: Path) -> None:
    printed = script(tmp_path, "find_package(opwright REQUIRED)", "-DOPWRIGHT_PYTHON=/nowhere/python")
    tried = "Pass one with -DOPWRIGHT_PYTHON=<path to python>. Tried: /nowhere/python: no such file"
    assert tried.lower() in printed.lower()  # releases of CMake differ in the case of the system's message


def test_a_python_with_another_opwright_is_not_used(tmp_path: Path) -> None:
    ours = Path(opwright.cmake_prefix_path())
    shutil.copytree(ours, tmp_path / "opwright" / "cmake")
    shutil.copy(ours.parent / "__init__.py", tmp_path / "opwright")
    text = f'find_package(opwright REQUIRED PATHS "{tmp_path}/opwright/cmake" NO_DEFAULT_PATH)'
    printed = script(tmp_path, text, f"-DOPWRIGHT_PYTHON={sys.executable}")
    assert f"it has a different opwright, {ours}" in printed


def test_find_package_torch_finds_the_pytorch_of_that_python(tmp_path: Path) -> None:
    text = """
        find_package(opwright REQUIRED)
        find_path(found TorchConfig.cmake PATH_SUFFIXES share/cmake/Torch)
        message("${found}")
    """
    printed = script(tmp_path, text, f"-DOPWRIGHT_PYTHON={sys.executable}")
    assert printed.endswith("torch/share/cmake/Torch")
