"""The program `opwright`: its verbs, and how errors are reported.

A verb's module imports only what describes its options; it imports the implementation when the verb runs.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import NoReturn

import click

from opwright import __version__
from opwright.cli.bench import bench
from opwright.cli.build import build
from opwright.cli.cache import cache
from opwright.cli.check import check
from opwright.cli.doctor import doctor
from opwright.cli.map import map
from opwright.cli.migrate import migrate
from opwright.cli.new import new
from opwright.cli.run import run
from opwright.cli.ship import ship
from opwright.cli.verify import verify
from opwright.errors import OpwrightError
from opwright.report.format import printable


def _version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"opwright {__version__}")
        context.exit()


class _InThisOrder(click.Group):
    """A group that lists its verbs in the order of its table, the order in which they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's own signature
        """The names of the verbs."""
        return list(self.commands)


app = _InThisOrder(
    name="opwright",
    help="Describe a PyTorch operator once in Python, make it fast in C++ or CUDA, and run it everywhere.",
    epilog=(
        "Exit codes: 0 success, 1 any other error, 2 wrong usage, 3 invalid op.py, 4 toolchain, 5 build, 6 load, 7"
        " cache, 8 bundle, 9 map; run and verify also exit with the codes of the host: see "
        "docs/reference/exit_codes.md."
    ),
    commands=[new, build, check, bench, ship, migrate, verify, run, map, cache, doctor],
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_version,
            help="Print the version and exit.",
        )
    ],
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; an error becomes one message on standard error and the exit code of its class."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="surrogateescape")  # file names are written unchanged, whatever their encoding
    try:
        try:
            app(prog_name="opwright")
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OpwrightError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:  # of standard output, or of a file that no verb handles
        _let_go()
        _fail(
            f"{error.filename or 'standard output'} cannot be used: {error.strerror or error}", OpwrightError.exit_code
        )


def _fail(message: str, code: int) -> NoReturn:
    # File names and file contents could contain escape sequences for the terminal.
    with contextlib.suppress(OSError):
        click.echo(f"{click.style('error:', fg='red', bold=True)} {printable(message)}", err=True)
    sys.exit(code)


def _let_go() -> None:
    """Detach a standard output that cannot be written: otherwise Python tries again at exit, and prints an error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
