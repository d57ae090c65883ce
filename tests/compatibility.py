"""Installs opwright with one Python and one PyTorch, runs a short session, and prints a row of docs/compatibility.md.

    python3.12 tests/compatibility.py 2.15.0

It needs only the standard library, and leaves nothing behind. The session creates, builds, checks (`--quick`) and
opens a library, ships a model that calls it, and verifies the bundle in the host, without Python.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
import sys
import tempfile
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
import torch, opwright
mine = opwright.open("mine")
gate, value = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8)
mine.ops.swiglu(gate, value).sum().backward()
assert gate.grad is not None
print(torch.__version__)
"""
STEPS = {
    "new": "opwright new mine",
    "build": "opwright build mine",
    "check": "opwright check mine --quick",
    "open": "python use.py",
    "ship": "opwright ship model.py:net --ops mine -o bundle --format torchscript",
    "verify": "opwright verify bundle",
}


def run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def session(torch: str, folder: Path) -> dict[str, str]:
    """Return `ok` or the end of the output of each step, up to the first one that fails."""
    home = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(home / "bin"), os.environ["PATH"]]),
        "OPWRIGHT_CACHE": str(folder / "cache"),
    }
    environment.pop("PYTHONPATH", None)
    (folder / "model.py").write_text(MODEL)
    (folder / "use.py").write_text(USE)
    steps = {"install": f"pip install -q {ROOT} torch=={torch}", **STEPS}
    results: dict[str, str] = {}
    for name, command in steps.items():
        done = run(command.split(), folder, environment)
        if done.returncode != 0:
            return {**results, name: (done.stdout + done.stderr)[-2000:]}
        results[name] = done.stdout.strip() if name == "open" else "ok"
    return results


def main() -> int:
    """Print the row of this Python and the PyTorch of the command line."""
    (torch,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        results = session(torch, Path(folder))
    name, result = list(results.items())[-1]
    passed = name == list(STEPS)[-1] and result == "ok"
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    verdict = "passed" if passed else f"failed: {name}"
    day = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    release = results.get("open", torch)
    print(
        f"| {release} | {platform.python_version()} | {system}, {platform.machine()} | {verdict} | {day} |", flush=True
    )
    if not passed:
        print(result, file=sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
