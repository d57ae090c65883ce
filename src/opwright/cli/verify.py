"""`opwright verify`: verifies that a bundle is complete and reproduces its goldens on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import bundle_argument, json_option

if TYPE_CHECKING:
    from pathlib import Path


@click.command
@bundle_argument
@json_option
def verify(bundle: Path, *, json: str | None) -> None:
    """Verify that a bundle is complete and works on this machine.

    BUNDLE is a folder that `opwright ship` wrote. The host program verifies digests, requirements, schemas and goldens,
    without Python; docs/reference/exit_codes.md lists its exit codes.

    Examples:

        opwright verify my_bundle

        opwright verify my_bundle --json -
    """
    from opwright.host.install import host_program
    from opwright.toolchain.run import become

    become([host_program(), bundle, "--verify", *(["--json", json] if json else [])])
