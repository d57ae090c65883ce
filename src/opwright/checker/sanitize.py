"""Builds a library for sanitizers, and parses the reports of those that the compiler builds in."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from opwright.checker.gpu_tool import ENVIRONMENT, TOOLS, with_lines
from opwright.errors import ToolchainError
from opwright.toolchain.compiler import find_cxx
from opwright.toolchain.compute_sanitizer import find_compute_sanitizer
from opwright.toolchain.pytorch import find_pytorch
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from opwright.builder.plan import Plan

SANITIZERS = ("address", "undefined", "thread", *TOOLS)
_SANITIZER_LIBRARIES = {"address": "libasan.so", "undefined": "libubsan.so", "thread": "libtsan.so"}

_HEADLINES = (
    re.compile(r"^.*(?:ERROR|WARNING): (?:Address|Thread|Leak)Sanitizer: .*$", re.MULTILINE),
    re.compile(r"^.*: runtime error: .*$", re.MULTILINE),
)
_LONGEST = 40  # lines to keep of a report


def checked(names: tuple[str, ...]) -> tuple[str, ...]:
    """Check the names of sanitizers: each must be known, and all must work together.

    Raises:
        ToolchainError: one is unknown, two exclude each other, or one needs a PyTorch or a program that is missing.
    """
    for name in names:
        if name not in SANITIZERS:
            msg = f"the sanitizer {name!r} is unknown: expected some of {', '.join(SANITIZERS)}"
            raise ToolchainError(msg)
    if "thread" in names and "address" in names:
        msg = "the address and thread sanitizers exclude each other: run the check twice"
        raise ToolchainError(msg)
    tools = tools_among(names)
    of_compiler = ", ".join(name for name in names if name not in tools)
    if tools and of_compiler:
        msg = (
            f"{of_compiler} and {', '.join(tools)} exclude each other: the first is built into code for the CPU, and "
            "the second watches the GPU from outside. Run the check twice"
        )
        raise ToolchainError(msg)
    if tools:
        if find_pytorch().cuda is None:
            msg = (
                f"{tools[0]} watches CUDA kernels, and this PyTorch is a CPU build: install one that is built for CUDA"
            )
            raise ToolchainError(msg)
        find_compute_sanitizer()
    return names


def tools_among(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the sanitizers that are tools of compute-sanitizer, for the GPU; each once."""
    return tuple(dict.fromkeys(name for name in names if name in TOOLS))


def instrumented(plan: Plan, names: tuple[str, ...]) -> Plan:
    """`plan`, with its C++ sources built with the sanitizers `names`, or its CUDA sources for those of the GPU."""
    if tools_among(names):
        return with_lines(plan)
    flag = f"-fsanitize={','.join(names)}"
    return replace(
        plan,
        cflags=(*plan.cflags, flag, "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"),
        ldflags=(*plan.ldflags, flag),
    )


def environment(names: tuple[str, ...]) -> dict[str, str]:
    """The environment variables that a process needs to open such a library.

    Raises:
        ToolchainError: the compiler has no runtime library for a sanitizer.
    """
    if tools_among(names):
        return dict(ENVIRONMENT)
    preloaded = " ".join(_runtime_library(name) for name in names)
    return {
        "LD_PRELOAD": preloaded,
        # Python and PyTorch leave much memory to the end of the process; another step looks for leaks.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # PyTorch is not instrumented, so it is ignored. The synchronization of its own threads is invisible and would
        # look like a race, so it gets none (see `Options.alone`). Callers in several threads are visible.
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:halt_on_error=1:report_signal_unsafe=0",
        **({"OMP_NUM_THREADS": "1"} if "thread" in names else {}),
    }


def report_in(output: str) -> tuple[str, str]:
    """The headline and the text of a sanitizer's report; both are empty if it printed none."""
    for headline in _HEADLINES:
        if found := headline.search(output):
            lines = output[found.start() :].splitlines()[:_LONGEST]
            return found[0].strip(), "\n".join(lines)
    return "", ""


def _runtime_library(name: str) -> str:
    compiler = find_cxx()
    path = run([*compiler.command, f"-print-file-name={_SANITIZER_LIBRARIES[name]}"]).output.strip()
    if "/" not in path:
        library = _SANITIZER_LIBRARIES[name]
        msg = f"{compiler.path} brings no {library}: install the sanitizers of your compiler, or use g++"
        raise ToolchainError(msg)
    return path
