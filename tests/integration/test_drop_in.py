"""An unchanged setup.py, built by PyTorch's builder and by opwright in its place: equal files and equal results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.conftest import write
from tests.interpreter import python

pytest.importorskip("setuptools")

SETUP = """
import os
from setuptools import setup, find_packages
from distutils.ccompiler import new_compiler
import torch.utils.cpp_extension
from torch.utils import cpp_extension
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, include_paths

assert all(isinstance(path, str) for path in include_paths())


class Late(BuildExtension):
    def build_extensions(self):
        if "-Wsign-compare" in self.compiler.compiler_so:
            self.compiler.compiler_so.remove("-Wsign-compare")
        for extension in self.extensions:
            if extension.name == "shaped._late":
                extension.extra_compile_args = ["-DANSWER=7"]
        super().build_extensions()
        # Another compiler, which the project uses itself.
        (built,) = new_compiler().compile(["csrc/plain.c"], output_dir="of_project")
        assert os.path.exists(built)


setup(
    name="shaped",
    version="1.0",
    packages=["shaped"],
    ext_modules=[
        CppExtension(
            "shaped._module",
            ["csrc/module.cpp", "csrc/cpu/module.cc"],
            include_dirs=["csrc"],
            define_macros=[("WITH_PYTHON", None), ("FACTOR", "3")],
            undef_macros=["NOTHING"],
            extra_compile_args={"cxx": ["-O1", "-Wno-sign-compare"], "nvcc": ["-O3"]},
            extra_link_args=["-s"],
            depends=["csrc/factor.h"],
        ),
        cpp_extension.CppExtension("shaped._late", ["csrc/late.cpp"], define_macros=[("WITH_PYTHON", None)]),
        torch.utils.cpp_extension.CppExtension("shaped._broken", ["csrc/broken.cpp"], optional=%(optional)s),
    ][: %(extensions)d],
    cmdclass={"build_ext": %(command)s},
)
"""
MODULE = """
#include <torch/headeronly/core/ScalarType.h>
#include "factor.h"
#ifdef WITH_PYTHON
#include <Python.h>
#endif
#ifdef NOTHING
#error this macro is undefined
#endif
static PyObject* answer(PyObject*, PyObject*) {
    return PyLong_FromLong(factor() * FACTOR + static_cast<long>(c10::ScalarType::Float));
}
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef described = {PyModuleDef_HEAD_INIT, "module", "", -1, methods, nullptr, nullptr, nullptr, nullptr};
#define JOINED(a, b) a##b
#define INIT(name) JOINED(PyInit_, name)
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&described); }
"""
LATE = MODULE.replace('#include "factor.h"', "static long factor() { return ANSWER; }\n#define FACTOR 1")
FILES = {
    "shaped/__init__.py": "",
    "csrc/module.cpp": MODULE,
    "csrc/cpu/module.cc": '#include "factor.h"\nlong factor() { return 5; }\n',
    "csrc/factor.h": "#pragma once\nlong factor();\n",
    "csrc/late.cpp": LATE,
    "csrc/plain.c": "",
    "csrc/broken.cpp": "int f() { return nowhere; }\n",
}
WITHOUT_SUFFIX = "Late.with_options(use_ninja=False, no_python_abi_suffix=True)"
ANSWERS = "import shaped._module, shaped._late; print(shaped._module.answer(), shaped._late.answer())"
DROP_IN = ("-m", "opwright.cpp_extension")
INPLACE = ("setup.py", "build_ext", "--inplace")


def project(
    folder: Path, command: str = WITHOUT_SUFFIX, *, extensions: int = 2, optional: bool = False, last: str = ""
) -> Path:
    values = {"command": command, "extensions": extensions, "optional": optional}
    return write(folder, {**FILES, "setup.py": SETUP % values + last})


def ran(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def answers(folder: Path) -> str:
    return subprocess.run(
        [*python(), "-c", ANSWERS], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def shared_objects(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "shaped").glob("*.so"))


@pytest.mark.sample(of="setup.py")
def test_both_builders_produce_the_same_files_and_results(tmp_path: Path) -> None:
    theirs, ours = project(tmp_path / "theirs"), project(tmp_path / "ours")
    assert ran(theirs, *INPLACE).returncode == 0
    ended = ran(ours, *DROP_IN, *INPLACE)
    assert ended.returncode == 0, ended.stderr
    assert shared_objects(ours) == shared_objects(theirs) == ["_late.so", "_module.so"]
    assert not list((ours / "build").rglob("*.o")), "PyTorch's builder has built it"
    assert answers(ours) == answers(theirs) == "21 13"


@pytest.mark.sample(of="setuptools releases")
def test_the_wheel_of_an_unchanged_project_contains_the_same_files_as_pytorchs(
    tmp_path: Path, setuptools_release: str, with_setuptools: dict[str, str]
) -> None:
    folder = project(tmp_path, last="\n")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools", "torch"]\nbuild-backend = "setuptools.build_meta"\n'
    )
    ended = ran(folder, "-m", "opwright", "build", "--setup", ".", "--wheel", "--json", "-", **with_setuptools)
    assert ended.returncode == 0, ended.stderr
    built = json.loads(ended.stdout)
    assert {Path(extension["path"]).name for extension in built["extensions"]} == {"_late.so", "_module.so"}
    wheel = folder / built["wheel"]
    assert "-cp3" in wheel.name
    with zipfile.ZipFile(wheel) as file:
        assert {"shaped/_late.so", "shaped/_module.so", "shaped/__init__.py"} <= set(file.namelist())
        assert f"setuptools ({setuptools_release})" in file.read("shaped-1.0.dist-info/WHEEL").decode()


@pytest.mark.sample(of="setup.py")
def test_a_build_in_place_prints_the_paths_of_its_shared_objects(tmp_path: Path) -> None:
    folder = project(tmp_path, "BuildExtension.with_options(use_mold=True)", extensions=1)
    ended = ran(tmp_path.parent, "-m", "opwright", "build", "--setup", str(folder))
    assert ended.returncode == 0, ended.stderr
    assert "warning: Unknown BuildExtension options: 'use_mold'\n" in ended.stderr
    assert all("cpython" in name for name in shared_objects(folder))
    assert ended.stdout.split() == [str(folder / "shaped" / name) for name in shared_objects(folder)]
    (folder / "csrc/factor.h").write_text("#pragma once\ninline long factor() { return 6; }\n")
    (folder / "csrc/cpu/module.cc").write_text("")
    assert ran(folder, *DROP_IN, *INPLACE).returncode == 0
    call = "import torch, shaped._module; print(shaped._module.answer())"
    assert ran(folder, "-c", call).stdout == "24\n"


@pytest.mark.sample(of="setup.py")
def test_only_an_optional_extension_may_fail_to_build(tmp_path: Path) -> None:
    lenient = ran(project(tmp_path / "lenient", extensions=3, optional=True), *DROP_IN, *INPLACE, "--parallel=3")
    assert lenient.returncode == 0, lenient.stderr
    assert 'building extension "shaped._broken" failed' in lenient.stderr
    assert answers(tmp_path / "lenient") == "21 13"
    strict = ran(project(tmp_path / "strict", extensions=3), *DROP_IN, *INPLACE)
    assert strict.returncode != 0
    assert "csrc/broken.cpp:1:18: error: " in strict.stderr
    assert "Traceback" not in strict.stderr


@pytest.mark.sample(of="setup.py")
def test_an_exception_in_setup_py_is_shown_without_frames_of_opwright(tmp_path: Path) -> None:
    folder = project(tmp_path, last="\nraise ValueError('of the project')\n")
    ended = ran(folder, *DROP_IN, "setup.py", "--version")
    assert ended.returncode == 1
    first, second, *_ = ended.stderr[ended.stderr.index("Traceback") :].splitlines()
    assert first == "Traceback (most recent call last):"
    assert 'File "setup.py", line' in second
    assert ended.stderr.endswith("ValueError: of the project\n")


@pytest.mark.sample(of="setup.py")
def test_processes_that_the_build_starts_build_with_opwright_too(tmp_path: Path) -> None:
    script = tmp_path / "start.py"
    script.write_text(
        "import subprocess, sys\n"
        "code = 'from torch.utils import cpp_extension; print(cpp_extension.BuildExtension.__module__)'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    ended = ran(tmp_path, *DROP_IN, str(script))
    assert ended.stdout == "opwright.builder.setuptools.command\n", ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.py", "build"), "nowhere.py does not exist"),
        (("-m", "pip", "install", "."), "pip builds in an environment without opwright: add --no-build-isolation"),
    ],
)
def test_a_build_without_opwright_is_an_error(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = ran(tmp_path, *DROP_IN, *arguments)
    assert ended.returncode == 3
    assert ended.stderr.startswith(f"error: {message}")


def test_a_folder_without_a_project_is_an_error(tmp_path: Path) -> None:
    ended = ran(tmp_path, "-m", "opwright", "build", "--setup", str(tmp_path))
    assert ended.returncode == 3
    assert "has neither a setup.py nor a pyproject.toml" in ended.stderr
