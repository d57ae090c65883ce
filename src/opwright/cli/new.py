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
@click.option("--cuda", is_flag=True, help="Add a CUDA kernel, cuda.cu.")
@click.option("--opencv", is_flag=True, help="Create an operator that calls OpenCV.")
@click.option("--python-only", is_flag=True, help="Create no native sources; requires no compiler.")
@click.option(
    *("--from", "existing"),
    metavar="NS::OP",
    multiple=True,
    help="Describe an existing operator, or NS::* for a whole namespace; repeat for more.",
)
@click.option(
    *("--import", "imports"),
    metavar="MODULE",
    multiple=True,
    help="With --from: the module that registers the operators, by default the one with the namespace's "
    "name; repeat for more.",
)
@json_option
def new(
    path: Path,
    *,
    cuda: bool,
    opencv: bool,
    python_only: bool,
    existing: tuple[str, ...],
    imports: tuple[str, ...],
    json: str | None,
) -> None:
    """Create an operator library that builds and passes its check.

    PATH is the folder to create; its name becomes the namespace of the operators. op.py describes in plain PyTorch
    what the operator computes; cpu.cpp implements it. Read both, then adapt them.

    Examples:

        opwright new my_ops

        opwright new ops/my_ops --cuda

        opwright new vision --opencv

        opwright new sketch --python-only --json -

        opwright new ops/vision --from torchvision::roi_align
    """
    from opwright.scaffold.create import create
    from opwright.scaffold.flavour import Flavour

    asked = {"--cuda": cuda, "--opencv": opencv, "--python-only": python_only, "--from": bool(existing)}
    chosen = [option for option, given in asked.items() if given]
    if len(chosen) > 1:
        msg = f"{' and '.join(chosen)} are mutually exclusive: choose one."
        raise click.UsageError(msg)
    if imports and not existing:
        msg = "--import names the module that registers operators: name the operators with --from."
        raise click.UsageError(msg)
    if existing:
        created = _described(path, existing, list(imports))
    else:
        created = create(path, Flavour(chosen[0].removeprefix("--")) if chosen else Flavour.CPU)
    commands = _next_commands(path, created)
    if json is not None:
        result = {
            "path": str(created.folder),
            "namespace": created.namespace,
            "operators": [f"{created.namespace}::{name}" for name in created.operators],
            "flavour": "external" if created.flavour is None else created.flavour.value,
            "files": list(created.files),
            "next": list(commands),
        }
        write_json(json, result)
    if json != "-":
        _show(path, created, commands)


def _described(path: Path, existing: tuple[str, ...], imports: list[str]) -> Created:
    """Create a library that describes registered operators."""
    from opwright.errors import SpecError
    from opwright.loader.kernels import has_gradient_kernel
    from opwright.loader.registered import find_registered
    from opwright.scaffold.create import create_external
    from opwright.scaffold.external import Registered, why_not

    namespace, modules, schemas = find_registered(existing, imports)
    left_out = {f"{namespace}::{name}": why for name, schema in schemas.items() if (why := why_not(schema))}
    if refused := [name for name in left_out if name in existing or len(left_out) == len(schemas)]:
        msg = f"{refused[0]} cannot be described in Python: {left_out[refused[0]]}"
        raise SpecError(msg)
    for name, why in left_out.items():
        click.echo(f"left out: {name}, because {why}", err=True)
    operators = [
        Registered(name, schema, has_gradient_kernel(f"{namespace}::{name}", "cpu"))
        for name, schema in schemas.items()
        if f"{namespace}::{name}" not in left_out
    ]
    return create_external(path, namespace, modules, operators)


def _next_commands(path: Path, created: Created) -> dict[str, str]:
    """The commands to type next, each with its purpose."""
    at = shlex.quote(str(path))
    check = {
        f"opwright check {at} --quick": "check it in seconds",
        f"opwright check {at}": "check it in all eleven runtimes",
        f"opwright bench {at}": "time it against its reference",
    }
    if created.flavour is None:
        record = f"opwright.record('{created.namespace}::*', into='recorded')"
        return {
            f"edit {at}/op.py": "write the references and the samples",
            **check,
            record: "write samples in a program",
        }
    if not created.flavour.is_native:
        return {**check, "opwright doctor": "see what native code this machine can build"}
    return {f"opwright build {at}": "build it into one shared object", **check}


def _show(path: Path, created: Created, commands: dict[str, str]) -> None:
    files = ", ".join(created.files)
    operators = ", ".join(f"{created.namespace}::{name}" for name in created.operators)
    several = "s" * (len(created.operators) > 1)
    width = max(map(len, commands))
    click.echo(f"{path}: {files}, with the operator{several} {operators}")
    click.echo("Next:")
    for command, purpose in commands.items():
        click.echo(f"  {command:<{width}}  {purpose}")
