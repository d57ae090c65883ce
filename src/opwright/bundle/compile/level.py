"""The processor level that Inductor compiles for: its settings, and the compiler flags that follow from them."""

from __future__ import annotations

from typing import Any

import torch

from opwright.bundle.choices import LEVELS
from opwright.errors import BundleError
from opwright.toolchain.compiler import find_cxx


def level_settings(cpu: str) -> dict[str, Any]:
    """Inductor's settings for processors of the level `cpu`; empty for this machine's own processor.

    Raises:
        BundleError: this release of PyTorch compiles only for this machine's processor.
    """
    from torch._inductor import config

    if cpu == "native":
        return {}
    if not hasattr(config.cpp, "march"):
        msg = (
            f"PyTorch {torch.__version__} compiles packages only for this machine's processor, not for {cpu}: "
            "use --cpu native or --format torchscript, or install PyTorch 2.13 or later"
        )
        raise BundleError(msg)
    return {"cpp.march": cpu, "cpp.simdlen": LEVELS[cpu]}


def level_flags(settings: dict[str, Any]) -> list[str]:
    """The compiler flags that select a processor, as Inductor composes them from its `settings`.

    Raises:
        ToolchainError: there is no compiler.
    """
    from torch._inductor import config, cpp_builder, cpu_vec_isa

    with config.patch(settings):
        chosen = ["march=native"]  # as PyTorch 2.11 and 2.12 always do
        if hasattr(config.cpp, "march"):
            chosen = cpp_builder._get_cpu_arch_cflags(find_cxx().host)  # noqa: SLF001  it has no public name
        return [*(f"-{flag}" for flag in chosen), *cpu_vec_isa.pick_vec_isa().build_arch_flags().split()]
