"""Runs a setup.py, or a program such as pip, with opwright's builder in place of PyTorch's.

python -m opwright.cpp_extension setup.py build_ext --inplace
python -m opwright.cpp_extension -m pip install --no-build-isolation .
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import OpwrightError, SpecError
from opwright.loader.drop_in.replacement import replace_in_children, replace_torchs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_USAGE = """usage: python -m opwright.cpp_extension setup.py COMMAND ...
       python -m opwright.cpp_extension -m MODULE ...

Runs an unchanged setup.py, or a module such as pip, with opwright's builder in place of
torch.utils.cpp_extension. pip requires --no-build-isolation, so that it builds in this environment.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the program that `arguments` name, as Python itself would, and return the exit code."""
    if not arguments or arguments[0] in {"-h", "--help"} or arguments == ["-m"]:
        sys.stdout.write(_USAGE)
        return 0 if arguments and arguments[0] != "-m" else 2
    try:
        _check(arguments)
    except OpwrightError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    replace_torchs()
    replace_in_children()
    try:
        if arguments[0] == "-m":
            sys.argv = list(arguments[1:])
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(arguments)
            sys.path[0] = str(Path(arguments[0]).absolute().parent)
            runpy.run_path(arguments[0], run_name="__main__")
    except OpwrightError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except Exception as error:
        traceback.print_exception(type(error), error, _theirs(error.__traceback__))
        return 1
    return 0


def _check(arguments: Sequence[str]) -> None:
    """Check that the build will run in an environment that has opwright.

    Raises:
        SpecError: it will not.
    """
    if arguments[0] != "-m":
        if not Path(arguments[0]).is_file():
            msg = f"{arguments[0]} does not exist (looked in {Path.cwd()}): expected a setup.py, or -m and a module"
            raise SpecError(msg)
        import setuptools

        if "develop" in arguments[1:] and int(setuptools.__version__.partition(".")[0]) >= 80:
            msg = (
                "this setuptools's develop command starts pip, which builds in an environment without opwright: "
                "use `python -m opwright.cpp_extension -m pip install --no-build-isolation -e .`"
            )
            raise SpecError(msg)
    elif arguments[1] == "pip" and {"install", "wheel"} & set(arguments[2:]) and not _without_isolation(arguments):
        msg = "pip builds in an environment without opwright: add --no-build-isolation"
        raise SpecError(msg)


def _without_isolation(arguments: Sequence[str]) -> bool:
    return "--no-build-isolation" in arguments or os.environ.get("PIP_NO_BUILD_ISOLATION") is not None


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that belongs to neither this file nor runpy."""
    while trace is not None and trace.tb_frame.f_code.co_filename in {__file__, runpy.__file__, "<frozen runpy>"}:
        trace = trace.tb_next
    return trace
