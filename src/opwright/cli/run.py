"""`opwright run`: runs a bundle in a process without Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import bundle_argument

if TYPE_CHECKING:
    from pathlib import Path

# All arguments after the bundle are passed to the host program, including --help.
_CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": ["-h"]}


@click.command(context_settings=_CONTEXT)
@bundle_argument
@click.pass_context
def run(context: click.Context, bundle: Path) -> None:
    """Run a bundle on inputs from files, without Python.

    BUNDLE is a folder that `opwright ship` wrote. All arguments after it are passed to the host program; `opwright
    run my_bundle --help` lists its options, including --json.

    Examples:

        opwright run my_bundle --input photo.jpg --top-k 5

        opwright run my_bundle --input image=a.npy --input warp=b.npy

        opwright run my_bundle --requests list.jsonl --runners 2 --json -
    """
    if str(bundle) == "--help":
        click.echo(context.get_help())
        return
    from opwright.host.install import host_program
    from opwright.toolchain.run import become

    become([host_program(), bundle, *context.args])
