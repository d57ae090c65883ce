"""Times the functions of `opwright/simd.h` and those of SLEEF, xsimd and Highway.

    apt-get install libsleef-dev libxsimd-dev libhwy-dev
    python benchmarks/vectors/speed.py [--json FILE]

All are in one program, built once with AVX2 and once with AVX-512, if this processor supports it. It compares each
result with the C library's, then calls one function after another on 4096 normally distributed numbers (of variance 9;
for log their magnitudes, plus 1.5), in 301 rounds of 20 calls, on one thread. Prints medians of the thread's processor
time. Highway has no erf.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "src" / "opwright" / "include"
# For AVX-512, the features that Highway requires.
FLAGS = {
    "AVX2": ("-mavx2", "-mfma", "-mf16c"),
    "AVX-512": (
        *("-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-maes", "-mpclmul", "-mgfni", "-mvaes", "-mvpclmulqdq"),
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512cd", "-mavx512vbmi", "-mavx512vbmi2"),
        *("-mavx512vnni", "-mavx512bitalg", "-mavx512vpopcntdq"),
    ),
}
PEERS = ("xsimd", "Highway", "SLEEF")


def timed(flags: tuple[str, ...]) -> list[dict[str, Any]]:
    """Build the program with these flags, run it, and return its rows."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = HERE / "speed.cpp", Path(folder) / "speed"
        command = ["g++", "-std=c++20", "-O3", "-Wno-ignored-attributes", *flags, f"-I{INCLUDE}"]
        if subprocess.run([*command, str(source), "-o", str(program), "-lsleef", "-lhwy"], check=False).returncode:
            sys.exit("it does not compile: apt-get install libsleef-dev libxsimd-dev libhwy-dev")
        rows: list[dict[str, Any]] = json.loads(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout)
    return rows


def main() -> None:
    """Build, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    sets = ["AVX2", "AVX-512"] if torch.backends.cpu.get_cpu_capability() == "AVX512" else ["AVX2"]
    found = {}
    print("nanoseconds per element, and the ratio of opwright's to each")
    for name in sets:
        found[name] = timed(FLAGS[name])
        for row in found[name]:
            times = row["nanoseconds"]
            beside = (
                f"{peer} {times[peer]:.3f} ({times['opwright'] / times[peer]:.2f})" for peer in PEERS if peer in times
            )
            title = f"{name} {row['type']} {row['function']}"
            print(f"{title:24} opwright {times['opwright']:.3f}", *beside, sep="   ")
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
