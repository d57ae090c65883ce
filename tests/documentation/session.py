"""Runs the blocks of one page in an empty folder, with one shell and one Python kernel.

The commands and the kernels start in forks of a process that has imported PyTorch, which saves seconds for each.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from tests.documentation.blocks import Block, commands_of
from tests.documentation.output import agrees
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
# What `<!-- clone -->` links to: the folders of a clone in which readers run commands.
CLONE = ("ops", "examples", "benchmarks")
# The longest that a command or a cell may run, in seconds: a limit for what hangs, not a measure.
LIMIT = 900


# A kernel exits if its parent is not the process with this ID.
KERNEL = """
import os
from ipykernel.kernelapp import launch_new_instance
os.environ.pop("JPY_PARENT_PID", None)
launch_new_instance()
"""


@functools.cache
def programs() -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the program `opwright` and with the kernel `forked`."""
    made = tempfile.TemporaryDirectory(prefix="opwright-programs-")
    folder = Path(made.name)
    # A script, because an installed program cannot import from the working directory either.
    (folder / "main.py").write_text("from opwright.cli import main\nmain()\n")
    program = folder / "opwright"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(python())} {folder}/main.py "$@"\n')
    program.chmod(0o755)
    (folder / "forked").mkdir()
    command = [*python(), "-c", KERNEL, "-f", "{connection_file}"]
    specification = {"argv": command, "display_name": "forked", "language": "python"}
    (folder / "forked/kernel.json").write_text(json.dumps(specification))
    return made


class Session:
    """The state of a page: its folder, the shell's working directory, and the kernel."""

    def __init__(self, fresh_folder: Callable[[], Path]) -> None:
        self._fresh_folder = fresh_folder
        self._begin()

    def _begin(self) -> None:
        self.folder = self._fresh_folder()
        self._working_directory = self.folder
        self._notebook = nbformat.v4.new_notebook()
        self._client: NotebookClient | None = None
        self._kernel = contextlib.ExitStack()
        self._printed = ""

    def close(self) -> None:
        """End the kernel."""
        self._kernel.close()
        # The client leaves sockets to the garbage collector. Here the tests ignore its warnings; later they would fail.
        self._client = None
        gc.collect()

    def run(self, block: Block) -> None:
        """Run a block, or compare it with the file or the output that it shows.

        Raises:
            AssertionError: the page shows something else than what happens.
        """
        if block.is_directive:
            self._directive(block)
        elif block.language == "output":
            self._compare(block, self._printed, block.text)
        elif block.language == "text":
            pass
        elif (name := block.attributes.get("excerpt")) is not None:
            self._excerpt(block, name)
        elif (name := block.attributes.get("file")) is not None:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif (name := block.attributes.get("apply")) is not None:
            self._apply(block, self.folder / name)
        elif block.language == "console":
            self._console(block)
        elif block.language == "python":
            self._python(block)
        else:
            msg = f"{block}: nothing runs {block.language} by itself; add file=PATH, excerpt=PATH or skip=REASON"
            raise AssertionError(msg)

    def _directive(self, block: Block) -> None:
        if block.language == "<!-- fresh folder":
            self.close()
            self._begin()
        elif block.language == "<!-- clone":
            for name in CLONE:
                (self.folder / name).symlink_to(ROOT / name)
        else:
            code, printed = self._shell(block.text)
            assert code == 0, f"{block}: {block.text} exited with {code}:\n{printed}"

    def _shell(self, command: str) -> tuple[int, str]:
        """Return the exit code of a command and what it printed; a `cd` lasts for the commands that follow."""
        left = self.folder / ".working-directory"
        script = f"{command}\n__code=$?; pwd >{left}; exit $__code"
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([programs().name, str(Path(sys.executable).parent), os.environ["PATH"]]),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "120",
        }
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._working_directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        if left.exists():
            self._working_directory = Path(left.read_text().strip())
            left.unlink()
        return done.returncode, done.stdout

    def _console(self, block: Block) -> None:
        commands = commands_of(block)
        for position, command in enumerate(commands, start=1):
            code, printed = self._shell(command.text)
            expected = block.attributes.get("exit", "0") if position == len(commands) else "0"
            assert expected in {str(code), "any"}, (
                f"{block}: `{command.text}` exited with {code}, not {expected}:\n{printed}"
            )
            if command.output:
                self._compare(block, printed, command.output)

    def _python(self, block: Block) -> None:
        if self._client is None:
            resources = {"metadata": {"path": str(self.folder)}}
            kernels = KernelSpecManager(kernel_dirs=[programs().name])
            manager = AsyncKernelManager(kernel_name="forked", kernel_spec_manager=kernels)
            self._client = NotebookClient(
                self._notebook, km=manager, timeout=LIMIT, allow_errors=True, resources=resources
            )
            self._kernel.enter_context(self._client.setup_kernel())
        cell = nbformat.v4.new_code_cell(block.text)
        self._notebook.cells.append(cell)
        self._client.execute_cell(cell, len(self._notebook.cells) - 1)
        raised, self._printed = "", ""
        for output in cell.outputs:
            if output["output_type"] == "error":
                raised = output["ename"]
                self._printed += f"{raised}: {output['evalue']}\n"
            elif output["output_type"] == "stream":
                self._printed += output["text"]
            else:
                self._printed += output["data"].get("text/plain", "") + "\n"
        expected = block.attributes.get("raises", "")
        assert raised == expected, (
            f"{block}: raised {raised or 'nothing'}, not {expected or 'nothing'}:\n{self._printed}"
        )

    def _excerpt(self, block: Block, name: str) -> None:
        path = next((place / name for place in (self.folder, ROOT) if (place / name).is_file()), None)
        assert path is not None, f"{block}: there is no file {name}, in the page's folder or in the repository"
        lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
        for line in map(str.strip, block.text.splitlines()):
            if line and line not in {"...", "# ...", "// ..."}:
                assert line in lines, f"{block}: {name} has no line {line!r} here"

    def _apply(self, block: Block, path: Path) -> None:
        lines = [line for line in block.text.splitlines() if not line.startswith(("---", "+++", "@@"))]
        before = "\n".join(line[1:] for line in lines if not line.startswith("+"))
        after = "\n".join(line[1:] for line in lines if not line.startswith("-"))
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{block}: {path.name} has these lines {text.count(before)} times:\n{before}"
        path.write_text(text.replace(before, after), encoding="utf-8")

    @staticmethod
    def _compare(block: Block, printed: str, shown: str) -> None:
        assert agrees(printed, shown), f"{block}: the page shows\n{shown}\nbut the program printed\n{printed}"
