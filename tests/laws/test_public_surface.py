"""The public names of opwright, and the cost of importing them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import opwright
from opwright import cpp_extension, errors

PUBLIC = {
    "BridgeError",
    "BuildError",
    "BundleError",
    "CacheError",
    "Library",
    "LoadError",
    "Loaded",
    "Make",
    "MapError",
    "Op",
    "OpwrightError",
    "Predictor",
    "Prepared",
    "Sample",
    "SignatureError",
    "SpecError",
    "SpreadRule",
    "Timing",
    "ToolchainError",
    "__version__",
    "bench",
    "build",
    "check",
    "cmake_prefix_path",
    "include_path",
    "library_at",
    "load",
    "load_inline",
    "load_ipython_extension",
    "map",
    "measure",
    "open",
    "record",
    "ship",
}

CPP_EXTENSION = {
    *("BuildExtension", "CUDAExtension", "CppExtension", "OpExtension", "SyclExtension", "load", "load_inline"),
    *("COMMON_NVCC_FLAGS", "CUDA_HOME", "CUDNN_HOME", "IS_HIP_EXTENSION", "ROCM_HOME", "check_compiler_is_gcc"),
    *("check_compiler_ok_for_platform", "get_compiler_abi_compatibility_and_version", "get_cxx_compiler"),
    *("get_default_build_root", "include_paths", "is_ninja_available", "library_paths"),
    *("remove_extension_h_precompiler_headers", "verify_ninja_availability"),
}

TORCHLESS = [
    "opwright",
    "opwright.cpp_extension",
    "opwright.cpp_extension.OpExtension",
    "opwright.Library",
    "opwright.Make",
    "opwright.Predictor",
    "opwright.errors",
    "opwright.spec",
    "opwright.toolchain",
]

# `python -m opwright.host.install`, a program.
DOCUMENTED = {"opwright.host"}

ROOT = Path(__file__).parents[2]
# Code that readers copy. Users rely on its imports from opwright.
SHOWN = [
    *(path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.md")),
    ROOT / "README.md",
    *(ROOT / "src/opwright/scaffold/templates").glob("*.py.jinja"),
    *(ROOT / "ops").rglob("*.py"),
]


def loads_torch(statement: str) -> bool:
    program = f"import sys\n{statement}\nprint('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return {"True\n": True, "False\n": False}[answer]


def test_the_public_names_are_exactly_these() -> None:
    assert set(opwright.__all__) == PUBLIC
    assert set(dir(opwright)) == PUBLIC
    assert list(opwright.__all__) == sorted(opwright.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(opwright, name) is not None


def test_the_extension_module_exports_exactly_these_names() -> None:
    assert set(cpp_extension.__all__) == CPP_EXTENSION
    assert set(dir(cpp_extension)) == CPP_EXTENSION
    for name in CPP_EXTENSION:
        assert hasattr(cpp_extension, name)
    with pytest.raises(AttributeError, match=r"module 'opwright\.cpp_extension' has no attribute 'CppExtenson'"):
        getattr(cpp_extension, "CppExtenson")  # noqa: B009  mypy would report the missing attribute


def private_uses(text: str) -> list[str]:
    """Returns the names that a text uses from opwright that are not public."""
    imported = re.findall(r"^ *from (opwright[\w.]*) import ([\w, ]+)", text, flags=re.MULTILINE)
    used = [(module, name.strip()) for module, names in imported for name in names.split(",")]
    used += [
        (module, name)
        for module, name in re.findall(
            r"(?<![\w./\"-])(opwright(?:\.cpp_extension)?)\.([A-Za-z]\w*)(?=[(\])., :])", text
        )
        if name != "cpp_extension"
    ]
    public = {"opwright": PUBLIC, "opwright.cpp_extension": CPP_EXTENSION}
    return [f"{module}.{name}" for module, name in used if name not in public.get(module, ())]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_that_readers_copy_uses_only_public_names(path: Path) -> None:
    assert set(private_uses(path.read_text(encoding="utf-8"))) <= DOCUMENTED


@pytest.mark.parametrize(
    "text",
    [
        "from opwright.bencher.timer import measure",
        "from opwright import Library, Libary",
        "def _(make: opwright.spec.Make) -> None:",
        "x = opwright.cpp_extension.CppExtenson(1)",
    ],
)
def test_the_law_of_public_names_detects_a_private_one(text: str) -> None:
    assert private_uses(text)


def test_every_error_is_public() -> None:
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree == {name for name in PUBLIC if name.endswith("Error")}


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        getattr(opwright, "opne")  # noqa: B009  mypy would report the missing attribute


@pytest.mark.parametrize("name", TORCHLESS)
def test_describing_an_operator_does_not_import_torch(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert not loads_torch(f"from {module} import {last}" if module else f"import {name}")


def test_the_check_for_torch_detects_an_import() -> None:
    assert loads_torch("import torch")
