"""`opwright new`: creates an operator library to start from."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import PATH, json_option
from opwright.cli.output import write_json

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.scaffold.create import Created


@click.command
@click.argument("path", type=PATH)
@click.option("--cuda", is_flag=True, help="With a CUDA kernel, cuda.cu.")
@click.option("--opencv", is_flag=True, help="With an operator that calls OpenCV.")
@click.option("--python-only", is_flag=True, help="Without native sources: no compiler is needed.")
@json_option
def new(path: Path, *, cuda: bool, opencv: bool, python_only: bool, json: str | None) -> None:
    """Create an operator library that builds and passes its check.

    PATH is the folder to create; its name becomes the namespace of the operators. op.py describes in plain PyTorch
    what the operator computes; cpu.cpp implements it. Read both, then change them into what you need.

    Examples:

        opwright new my_ops

        opwright new ops/my_ops --cuda

        opwright new vision --opencv

        opwright new sketch --python-only --json -
    """
    from opwright.scaffold.create import create
    from opwright.scaffold.flavour import Flavour

    asked = {"--cuda": cuda, "--opencv": opencv, "--python-only": python_only}
    chosen = [option for option, given in asked.items() if given]
    if len(chosen) > 1:
        msg = f"{' and '.join(chosen)} exclude each other: choose one."
        raise click.UsageError(msg)
    flavour = Flavour(chosen[0].removeprefix("--")) if chosen else Flavour.CPU
    created = create(path, flavour)
    commands = _next_commands(path, created)
    if json is not None:
        result = {
            "path": str(created.folder),
            "namespace": created.namespace,
            "operators": [f"{created.namespace}::{flavour.operator}"],
            "flavour": flavour.value,
            "files": list(created.files),
            "next": list(commands),
        }
        write_json(json, result)
    if json != "-":
        _show(path, created, commands)


def _next_commands(path: Path, created: Created) -> dict[str, str]:
    """The commands to type next, each with its purpose."""
    at = shlex.quote(str(path))
    check = {
        f"opwright check {at} --quick": "check it in seconds",
        f"opwright check {at}": "check it in all eleven runtimes",
        f"opwright bench {at}": "time it against its reference",
    }
    if not created.flavour.is_native:
        return {**check, "opwright doctor": "see what this machine has for native code"}
    return {f"opwright build {at}": "build it into one shared object", **check}


def _show(path: Path, created: Created, commands: dict[str, str]) -> None:
    files = ", ".join(created.files)
    operator = f"{created.namespace}::{created.flavour.operator}"
    width = max(map(len, commands))
    click.echo(f"{path}: {files}, with the operator {operator}")
    click.echo("Next:")
    for command, purpose in commands.items():
        click.echo(f"  {command:<{width}}  {purpose}")
