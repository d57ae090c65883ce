"""A Python that has already imported PyTorch, for tests that do not test process startup."""

from __future__ import annotations

import contextlib
import functools
import runpy
import sys
from pathlib import Path
from types import ModuleType

# The modules that torch.compile and AOTInductor import on first use.
_OF_COMPILERS = ("torch._inductor.compile_fx", "setuptools")
_open = contextlib.ExitStack()


@functools.cache
def server() -> tuple[str, ...]:
    """Returns the start of a command line that runs the `main` of a module in a process forked from a shared one.

    From the first call on, `opwright.check` forks its processes from there, too.
    """
    from opwright.checker.run_cells import PRELOADED
    from opwright.toolchain.fork_server import fork_server

    return _open.enter_context(fork_server((*PRELOADED, *_OF_COMPILERS)))


def python() -> tuple[str, ...]:
    """Returns the start of a command line, to use in place of `python`; `-c TEXT`, `-m MODULE` or a script follows.

    Each program runs in its own process, forked from one that has imported PyTorch, which saves seconds. So do the
    processes that opwright starts in the program.
    """
    return (*server(), __name__, *server(), "--")


def close() -> None:
    """Ends the process that the others are forked from."""
    _open.close()
    server.cache_clear()


def main() -> None:
    """Runs the program that the arguments name, in the forked process."""
    from opwright.toolchain import fork_server

    length = sys.argv.index("--", 1)
    fork_server._shared.append(tuple(sys.argv[1:length]))
    flag, *arguments = sys.argv[length + 1 :]
    if flag not in {"-c", "-m"}:
        sys.argv = [flag, *arguments]
        sys.path[0] = str(Path(flag).parent)
        runpy.run_path(flag, run_name="__main__")
        return
    what, *arguments = arguments
    sys.argv = [flag, *arguments]
    sys.path[0] = str(Path.cwd())
    if flag == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
        return
    script = ModuleType("__main__")
    sys.modules["__main__"] = script  # pickle looks up the classes of a script here
    exec(compile(what, "<string>", "exec"), script.__dict__)


if __name__ == "__main__":
    main()
