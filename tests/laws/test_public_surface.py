"""What `import opwright` offers, and what it must not cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

import opwright
from opwright import errors

PUBLIC = {
    "BridgeError",
    "BuildError",
    "BundleError",
    "CacheError",
    "Library",
    "LoadError",
    "Op",
    "OpwrightError",
    "SignatureError",
    "SpecError",
    "ToolchainError",
    "__version__",
    "bench",
    "build",
    "check",
    "cmake_prefix_path",
    "include_path",
    "load",
    "load_inline",
    "open",
    "ship",
}

TORCHLESS = ["opwright", "opwright.errors", "opwright.spec", "opwright.toolchain"]


def loads_torch(statement: str) -> bool:
    program = f"import sys\n{statement}\nprint('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return {"True\n": True, "False\n": False}[answer]


def test_the_public_names_are_these_and_no_others() -> None:
    assert set(opwright.__all__) == PUBLIC
    assert set(dir(opwright)) == PUBLIC
    assert list(opwright.__all__) == sorted(opwright.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(opwright, name) is not None


def test_every_error_is_public() -> None:
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree == {name for name in PUBLIC if name.endswith("Error")}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        _ = opwright.opne


@pytest.mark.parametrize("module", TORCHLESS)
def test_describing_an_operator_does_not_cost_the_import_of_torch(module: str) -> None:
    assert not loads_torch(f"import {module}")


def test_the_proof_that_torch_is_absent_sees_it_where_it_is() -> None:
    assert loads_torch("import torch")
