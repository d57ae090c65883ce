"""The pins of constraints.txt, resolved from a registry's metadata for every supported PyTorch and Python.

PyTorch is the build that pip installs on Linux by default, whichever build is installed here.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
CELLS = [(torch, f"3.{minor}") for torch in ("2.11.0", "2.13.0", "2.15.0") for minor in range(10, 15)]
WITHOUT_A_WHEEL = ("2.15.0", "3.10")
# PyTorch determines their versions.
OF_PYTORCH = re.compile(r"setuptools|triton|cuda-.*|nvidia-.*")
NO_REGISTRY = re.compile(r"failed to fetch|error sending request|dns error|connect", re.IGNORECASE)


def resolve(torch: str, python: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Resolves all requirements, under the pins and the ones in `more`."""
    constraints = folder / f"{torch}-{python}.txt"
    pins = re.sub(r"^torch==.*", f"torch=={torch}", PINS, flags=re.MULTILINE)
    constraints.write_text("\n".join([pins, *more]), encoding="utf-8")
    command = [sys.executable, "-m", "uv", "pip", "compile", str(ROOT / "pyproject.toml"), "--extra", "dev"]
    command += ["--constraint", str(constraints), "--python-version", python, "--no-config", "--only-binary", ":all:"]
    command += ["--python-platform", "x86_64-manylinux_2_28", "--quiet", "--no-header", "--no-annotate"]
    command += ["--system-certs"]  # as pip does
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    done.stderr = re.sub(r"\s+", " ", done.stderr)
    if done.returncode != 0 and NO_REGISTRY.search(done.stderr):
        pytest.skip(f"no registry of Python packages can be reached: {done.stderr[-300:]}")
    return done


def unpinned(torch: str, python: str, resolved: str) -> set[str]:
    """Returns the packages without a pin, except those of PyTorch."""
    names = {canonicalize_name(Requirement(line).name) for line in resolved.splitlines()}
    pins = [Requirement(line) for line in PINS.splitlines() if line and not line.startswith("#")]
    pinned = {
        canonicalize_name(pin.name) for pin in pins if not pin.marker or pin.marker.evaluate({"python_version": python})
    }
    return {name for name in names - pinned if not OF_PYTORCH.fullmatch(name)}


# Each takes seconds on the network.
@pytest.mark.sample(1)
@pytest.mark.parametrize(("torch", "python"), CELLS)
def test_the_pins_resolve_with_every_pytorch_on_every_python(torch: str, python: str, tmp_path: Path) -> None:
    done = resolve(torch, python, tmp_path)
    if (torch, python) == WITHOUT_A_WHEEL:
        assert "no wheels with a matching Python implementation tag" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert unpinned(torch, python, done.stdout) == set()


def test_a_pin_of_triton_contradicts_pytorch(tmp_path: Path) -> None:
    done = resolve("2.13.0", "3.13", tmp_path, "triton==3.9.0")
    assert done.returncode == 1
    assert "torch==2.13.0 depends on triton" in done.stderr
