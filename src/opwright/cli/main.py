"""The program `opwright`: its verbs, and what an error looks like."""

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
from opwright.cli.output import stderr
from opwright.cli.run import CONTEXT, run
from opwright.cli.ship import ship
from opwright.cli.verify import verify
from opwright.errors import OpwrightError

app = typer.Typer(
    name="opwright",
    help="Describe a PyTorch operator once in Python, make it fast in C++ or CUDA, run it everywhere.",
    epilog=(
        "Exit codes: 0 done, 2 wrong usage, 3 op.py, 4 toolchain, 5 build, 6 load, 7 cache, 8 bundle, 1 anything else;"
        " run and verify: those of the host, docs/host.md."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Hold the options that come before the verb."""


def main() -> None:
    """Run the command line; an error is one message on standard error and its own exit code."""
    try:
        app()
    except OpwrightError as error:
        console = stderr()
        console.print("error:", style="bold red", end=" ")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
