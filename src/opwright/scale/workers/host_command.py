"""The program that runs a bundle on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.scale.facts.bundle_facts import BundleFacts


def host_command(bundle: Path, facts: BundleFacts) -> list[str | Path]:
    """The bundle's own host, or the one that opwright builds, which takes about a minute the first time.

    Raises:
        ToolchainError: the bundle has no host, and none can be built here.
    """
    if facts.is_self_contained:
        return [bundle / "run"]
    from opwright.host.install import host_program

    return [host_program(), bundle]


def host_version(facts: BundleFacts) -> str:
    """The version of PyTorch that determines the results besides the bundle, if the bundle does not contain it.

    Raises:
        ToolchainError: there is no PyTorch.
    """
    if facts.is_self_contained:
        return "the bundle's own"
    from opwright.toolchain.pytorch import find_pytorch

    return find_pytorch().version
