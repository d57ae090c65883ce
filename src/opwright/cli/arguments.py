"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path

import click

from opwright.toolchain.devices import DEVICES

PATH = click.Path(path_type=Path)

library_argument = click.argument("path", type=PATH)
bundle_argument = click.argument("bundle", type=PATH)
ops_option = click.option("--op", "ops", metavar="NAME", multiple=True, help="Only this operator; repeat for more.")
devices_option = click.option(
    *("--device", "devices"),
    metavar="NAME",
    multiple=True,
    type=click.Choice(DEVICES),
    help=f"Only this device: {' or '.join(DEVICES)}.",
)
seed_option = click.option("--seed", metavar="N", type=int, default=0, show_default=True, help="Seed of random inputs.")
html_option = click.option("--html", metavar="FILE", type=PATH, help="Write the report as an HTML page.")
json_option = click.option("--json", metavar="FILE", help="Write the result as JSON to FILE; - is standard output.")
