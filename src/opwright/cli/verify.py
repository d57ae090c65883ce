"""`opwright verify`: whether a bundle is whole, and gives here what it gave where it was made."""

from __future__ import annotations

from opwright.cli.arguments import BundleArgument
from opwright.cli.output import JsonOption
from opwright.host.install import host_program
from opwright.toolchain.run import become


def verify(bundle: BundleArgument, *, json: JsonOption = None) -> None:
    """Check a bundle on this machine: every digest, what it needs, every schema, and its goldens.

    The host does it, without Python. Its exit codes are docs/host.md's.

    Examples:

        opwright verify my_bundle

        opwright verify my_bundle --json -
    """
    become([host_program(), bundle, "--verify", *(["--json", json] if json else [])])
