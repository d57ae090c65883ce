"""`opwright run`: a bundle, in a process without Python."""

from __future__ import annotations

import typer

from opwright.cli.arguments import BundleArgument
from opwright.host.install import host_program
from opwright.toolchain.run import become

# What stands behind the bundle is the program's own affair, and it explains it itself.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": ["-h"]}


def run(context: typer.Context, bundle: BundleArgument) -> None:
    """Run a bundle on inputs from files, in a process without Python.

    Everything behind the bundle goes to the host program: `opwright run my_bundle --help` lists it.

    Examples:

        opwright run my_bundle --input photo.jpg --top-k 5

        opwright run my_bundle --input image=a.npy --input warp=b.npy --output result.npz

        opwright run my_bundle --requests list.jsonl --runners 2 --json -
    """
    become([host_program(), bundle, *context.args])
