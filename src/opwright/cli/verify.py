"""`opwright verify`: verifies that a bundle is complete and reproduces its goldens on this machine."""

from __future__ import annotations

from opwright.cli.arguments import BundleArgument
from opwright.cli.output import JsonOption


def verify(bundle: BundleArgument, *, json: JsonOption = None) -> None:
    """Verify that a bundle is complete and works on this machine.

    Compares digests, requirements, schemas and goldens. The host program does this, without Python; docs/host.md lists
    its exit codes.

    Examples:

        opwright verify my_bundle

        opwright verify my_bundle --json -
    """
    from opwright.host.install import host_program
    from opwright.toolchain.run import become

    become([host_program(), bundle, "--verify", *(["--json", json] if json else [])])
