"""`opwright new`: a folder with an operator library to start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from opwright.cli.output import JsonOption, stdout, write_json
from opwright.scaffold.create import Created, create
from opwright.scaffold.flavour import Flavour


def new(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The folder to make; its name becomes the operators' namespace.")
    ],
    *,
    cuda: Annotated[bool, typer.Option("--cuda", help="Also a CUDA kernel, cuda.cu.")] = False,
    opencv: Annotated[bool, typer.Option("--opencv", help="An operator that calls OpenCV.")] = False,
    python_only: Annotated[bool, typer.Option("--python-only", help="No native source, and so no compiler.")] = False,
    json: JsonOption = None,
) -> None:
    """Make a folder with an operator library that builds, and checks green, as it stands.

    op.py says in plain PyTorch what the operator computes, cpu.cpp how to do it quickly. Both are there
    to be read, and to be changed into what you need.

    Examples:

        opwright new my_ops

        opwright new ops/my_ops --cuda

        opwright new vision --opencv

        opwright new sketch --python-only --json -
    """
    asked = {"--cuda": cuda, "--opencv": opencv, "--python-only": python_only}
    chosen = [option for option, given in asked.items() if given]
    if len(chosen) > 1:
        msg = f"{' and '.join(chosen)} exclude each other: choose one."
        raise typer.BadParameter(msg)
    flavour = Flavour(chosen[0].removeprefix("--")) if chosen else Flavour.CPU
    created = create(path, flavour)
    following = _following(path, flavour)
    if json is not None:
        result = {
            "path": str(created.folder),
            "namespace": created.namespace,
            "operators": [f"{created.namespace}::{flavour.operator}"],
            "flavour": flavour.value,
            "files": list(created.files),
            "next": list(following),
        }
        write_json(json, result)
    if json != "-":
        _show(path, created, following)


def _following(path: Path, flavour: Flavour) -> dict[str, str]:
    """The commands to type next, each with what it is for."""
    at = shlex.quote(str(path))
    check = {
        f"opwright check {at} --quick": "is it right? an answer in seconds",
        f"opwright check {at}": "in all eleven runtimes",
        f"opwright bench {at}": "is it fast? beside its reference",
    }
    if flavour is Flavour.PYTHON_ONLY:
        return {**check, "opwright doctor": "what this machine has for native code"}
    return {f"opwright build {at}": "one shared object of it", **check}


def _show(path: Path, created: Created, following: dict[str, str]) -> None:
    console = stdout()
    files = ", ".join(created.files)
    operator = f"{created.namespace}::{created.flavour.operator}"
    width = max(map(len, following))
    lines = [
        f"{path}: {files}, with the operator {operator}",
        "Next:",
        *(f"  {command:<{width}}  {purpose}" for command, purpose in following.items()),
    ]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
