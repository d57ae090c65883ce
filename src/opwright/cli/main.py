"""The program `opwright`: its verbs, and how errors are reported.

A verb's module imports what only describes its options; what does the work is imported when the verb runs.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from opwright import __version__
from opwright.cli.bench import bench
from opwright.cli.build import build
from opwright.cli.check import check
from opwright.cli.doctor import doctor
from opwright.cli.migrate import migrate
from opwright.cli.new import new
from opwright.cli.run import CONTEXT, run
from opwright.cli.ship import ship
from opwright.cli.verify import verify
from opwright.errors import OpwrightError

app = typer.Typer(
    name="opwright",
    help="Describe a PyTorch operator once in Python, make it fast in C++ or CUDA, run it everywhere.",
    epilog=(
        "Exit codes: 0 done, 2 wrong usage, 3 op.py, 4 toolchain, 5 build, 6 load, 7 cache, 8 bundle, 1 anything else;"
        " for run and verify, those of the host: see docs/host.md."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help as plain text: drawing boxes takes longer than all the rest of `opwright --help`
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(new)
app.command()(build)
app.command()(check)
app.command()(bench)
app.command()(ship)
app.command()(migrate)
app.command()(verify)
app.command(context_settings=CONTEXT)(run)
app.command()(doctor)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"opwright {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before the verb."""


def main() -> None:
    """Run the command line; an error becomes one message on standard error and the exit code of its class."""
    try:
        app(prog_name="opwright")
    except OpwrightError as error:
        typer.echo(f"{typer.style('error:', fg='red', bold=True)} {error}", err=True)
        sys.exit(error.exit_code)
