"""Installs opwright as the README says, runs a session, and prints a row of docs/compatibility.md.

    python3.12 tests/compatibility.py                              # everything at its newest version
    python3.12 tests/compatibility.py 2.15.0 --cxx clang++-14      # one release of PyTorch, another compiler

It needs only the standard library, and leaves nothing behind. The session creates, builds, checks (`--quick`) and
opens a library, builds the unchanged setup.py of a C++ extension, ships a model that calls the library, and runs the
bundle in the host, without Python. It also builds the library in ops/lltm.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL = """
import torch


class Gated(torch.nn.Module):
    def forward(self, gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return torch.ops.mine.swiglu(gate, value)


def net() -> torch.nn.Module:
    return Gated().eval()


def samples():
    yield torch.ones(4, 8), torch.ones(4, 8)
"""
USE = """
import numpy, torch, opwright
mine = opwright.open("mine")
gate, value = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8)
mine.ops.swiglu(gate, value).sum().backward()
assert gate.grad is not None
numpy.savez("inputs.npz", gate=gate.detach().numpy(), value=value.numpy())
print(torch.__version__)
"""
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(name="twice", ext_modules=[CppExtension("twice", ["twice.cpp"])], cmdclass={"build_ext": BuildExtension})
"""
TWICE = """
#include <torch/extension.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", [](const at::Tensor& x) { return x + x; }); }
"""
FILES = {"model.py": MODEL, "use.py": USE, "setup.py": SETUP, "twice.cpp": TWICE}
STEPS = {
    "doctor": "opwright doctor",
    "new": "opwright new mine",
    "build": "opwright build mine",
    "check": "opwright check mine --quick",
    "open": "python use.py",
    "setup.py": "python -m opwright.cpp_extension setup.py build_ext --inplace",
    "extension": "python -c 'import torch, twice; assert twice.twice(torch.ones(2)).sum() == 4'",
    "ship": "opwright ship model.py:net --ops mine -o bundle --format torchscript",
    "verify": "opwright verify bundle",
    "run": "opwright run bundle --input inputs.npz",
    "lltm": f"opwright build {ROOT / 'ops/lltm'}",
}


def session(torch: str, cxx: str, folder: Path) -> dict[str, str]:
    """Return `ok` or the end of the output of each step, up to the first one that fails."""
    home = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(home / "bin"), os.environ["PATH"]]),
        "OPWRIGHT_CACHE": str(folder / "cache"),
        **({"CXX": cxx} if cxx else {}),
    }
    environment.pop("PYTHONPATH", None)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    results: dict[str, str] = {}
    for name, command in {"install": f"pip install -q {ROOT} numpy {torch and f'torch=={torch}'}", **STEPS}.items():
        started = time.monotonic()
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - started
        print(f"{name:<10} exit code {done.returncode}, {seconds:.0f} s: {command}", file=sys.stderr, flush=True)
        if done.returncode != 0:
            return {**results, name: (done.stdout + done.stderr)[-3000:]}
        results[name] = done.stdout.strip() if name == "open" else "ok"
    return results


def compiler(cxx: str) -> str:
    """The first line that the compiler prints about itself."""
    done = subprocess.run([cxx or "c++", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0] or f"no {cxx or 'c++'}"


def main() -> int:
    """Print the row of this Python and of the PyTorch and the compiler of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("torch", nargs="?", default="", help="a release of PyTorch (default: the newest)")
    parser.add_argument("--cxx", default="", help="the C++ compiler (default: the one that opwright finds)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = session(given.torch, given.cxx, Path(folder))
    name, result = list(results.items())[-1]
    passed = name == list(STEPS)[-1] and result == "ok"
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    columns = [
        results.get("open", given.torch or "newest"),
        platform.python_version(),
        compiler(given.cxx),
        f"{system}, {platform.machine()}",
        "passed" if passed else f"failed: {name}",
        dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
    ]
    print(f"| {' | '.join(columns)} |", flush=True)
    if not passed:
        print(result, file=sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
