"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import click

from opwright.cli.output import check_target
from opwright.toolchain.devices import DEVICES

PATH = click.Path(path_type=Path)

Target = TypeVar("Target", str, Path, None)


def _checked(_context: click.Context, option: click.Parameter, target: Target) -> Target:
    if target is not None:
        check_target(option.opts[0], str(target))
    return target


def size_in_bytes(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """The number of bytes in an option such as `--max-size 5GB`."""
    from opwright.cache.bound import bytes_of

    try:
        return None if text is None else bytes_of(text)
    except ValueError as error:
        msg = f"{text!r} is not a size: expected a number with a unit, such as 5GB or 500MB"
        raise click.BadParameter(msg) from error


library_argument = click.argument("path", type=PATH)
bundle_argument = click.argument("bundle", type=PATH)
ops_option = click.option("--op", "ops", metavar="NAME", multiple=True, help="Only this operator; repeat for more.")
devices_option = click.option(
    *("--device", "devices"),
    metavar="NAME",
    multiple=True,
    type=click.Choice(DEVICES),
    help=f"Only this device; repeat for more: {' or '.join(DEVICES)}.",
)
seed_option = click.option("--seed", metavar="N", type=int, default=0, show_default=True, help="Seed of random inputs.")
html_option = click.option(
    "--html", metavar="FILE", type=PATH, callback=_checked, help="Write the report as an HTML page."
)
junit_option = click.option(
    "--junit", metavar="FILE", type=PATH, callback=_checked, help="Write the report as JUnit XML, for CI services."
)
_JSON_HELP = "Write the result as JSON to FILE; - is standard output."
json_option = click.option("--json", metavar="FILE", help=_JSON_HELP)
# For verbs that run long and create no folder in which FILE could be.
report_json_option = click.option("--json", metavar="FILE", callback=_checked, help=_JSON_HELP)
