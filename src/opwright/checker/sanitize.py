"""Builds a library for sanitizers, and parses the reports of those that the compiler provides."""

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
_LONGEST = 40  # lines of a report to keep


def checked(names: tuple[str, ...]) -> tuple[str, ...]:
    """Validate the names of sanitizers: each must be known, and all must be compatible.

    Raises:
        ToolchainError: one is unknown, two cannot be combined, or one requires a PyTorch build or a program that is
            missing.
    """
    for name in names:
        if name not in SANITIZERS:
            msg = f"the sanitizer {name!r} is unknown: expected one of {', '.join(SANITIZERS)}"
            raise ToolchainError(msg)
    if "thread" in names and "address" in names:
        msg = "the address and thread sanitizers cannot be combined: run the check once with each"
        raise ToolchainError(msg)
    tools = tools_among(names)
    of_compiler = ", ".join(name for name in names if name not in tools)
    if tools and of_compiler:
        msg = (
            f"{of_compiler} and {', '.join(tools)} cannot be combined: the former instruments CPU code, and the latter "
            "checks CUDA kernels from another program. Run the check once with each"
        )
        raise ToolchainError(msg)
    if tools:
        if find_pytorch().cuda is None:
            msg = f"{tools[0]} checks CUDA kernels, but this PyTorch is a CPU build: install one that is built for CUDA"
            raise ToolchainError(msg)
        find_compute_sanitizer()
    return names


def tools_among(names: tuple[str, ...]) -> tuple[str, ...]:
    """The sanitizers among `names` that are tools of compute-sanitizer, for the GPU; without duplicates."""
    return tuple(dict.fromkeys(name for name in names if name in TOOLS))


def instrumented(plan: Plan, names: tuple[str, ...]) -> Plan:
    """`plan` with its C++ sources built for the sanitizers `names`, or its CUDA sources for those of the GPU."""
    if tools_among(names):
        return with_lines(plan)
    flag = f"-fsanitize={','.join(names)}"
    return replace(
        plan,
        cflags=(*plan.cflags, flag, "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"),
        ldflags=(*plan.ldflags, flag),
    )


def environment(names: tuple[str, ...]) -> dict[str, str]:
    """The environment variables of a process that opens a library built for the sanitizers `names`.

    Raises:
        ToolchainError: the compiler has no runtime library for a sanitizer.
    """
    if tools_among(names):
        return dict(ENVIRONMENT)
    preloaded = " ".join(_runtime_library(name) for name in names)
    return {
        "LD_PRELOAD": preloaded,
        # Python and PyTorch leave memory allocated at exit; another step checks for leaks.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # PyTorch is not instrumented, so it is ignored. The sanitizer would take the synchronization of its threads,
        # which it cannot see, for a race, so PyTorch starts none (see `Options.alone`). It does see calls from several
        # threads.
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
        msg = f"{compiler.path} does not provide {library}: install your compiler's sanitizers, or use g++"
        raise ToolchainError(msg)
    return path
