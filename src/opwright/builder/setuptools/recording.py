"""A setuptools compiler that records its command lines, and builds them through opwright's cache."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import setuptools
from setuptools.errors import CompileError, LinkError

from opwright.builder.compile import build_plan, copy_to
from opwright.builder.ninja import Unit
from opwright.builder.plan import Commands, Plan
from opwright.builder.setuptools import NEWEST_TESTED, nvcc, report
from opwright.errors import BuildError, OpwrightError
from opwright.report.progress import Progress
from opwright.toolchain.compiler import Compiler, find_cxx
from opwright.toolchain.flags import STANDARD
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from distutils.unixccompiler import UnixCCompiler as _Base
else:
    _Base = object

# Flags whose value is a path, in the same word or the next.
_PATH_FLAGS = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")


@dataclass
class _Recorded(threading.local):
    """The recorded commands of one thread: setuptools can build several extensions in parallel.

    Attributes:
        units: the unit that compiles each object that setuptools expects.
        device_link: nvcc's command line that links device code.
    """

    units: dict[str, Unit] = field(default_factory=dict)
    device_link: tuple[str, ...] = ()


class Recording(_Base):
    """The class that `record` mixes into a setuptools compiler."""

    recorded: _Recorded
    compiler_so: list[str]
    EXECUTABLE: str
    verbose_steps: bool

    def object_filenames(self, source_filenames: Any, strip_dir: Any = False, output_dir: Any = "") -> list[str]:
        """The names of objects, which differ for `a.cpp` and `a.cu`."""
        names = super().object_filenames(source_filenames, strip_dir, output_dir)
        suffixes = [Path(source).suffix for source in source_filenames]
        return [str(Path(name).with_suffix(f"{suffix}.o")) for name, suffix in zip(names, suffixes, strict=True)]

    def _compile(
        self, obj: str, src: str, ext: str, cc_args: list[str], extra_postargs: Any, pp_opts: list[str]
    ) -> None:
        """Record the command line that compiles `src`; `extra_postargs` may be a dict keyed by compiler."""
        common = _with_system_headers(str(word) for word in cc_args if word != "-c")
        if Path(src).suffix in nvcc.SUFFIXES:
            command = nvcc.command([*common, *nvcc.flags(_of(extra_postargs, "nvcc"))])
        else:
            of_python = Compiler(Path(self.compiler_so[0]), tuple(self.compiler_so[1:])).flags
            given = _of(extra_postargs, "cxx")
            standard = [] if any(flag.startswith("-std=") for flag in given) else [STANDARD]
            command = [*find_cxx().command, *of_python, *_cxxflags(of_python), *common, *given, *standard]
        self.recorded.units[obj] = Unit(Path(src).absolute(), tuple(_absolute(command)))
        if isinstance(extra_postargs, dict) and extra_postargs.get("nvcc_dlink"):
            device_link = nvcc.command(nvcc.flags(_of(extra_postargs, "nvcc_dlink")))
            self.recorded.device_link = tuple(_absolute(device_link))

    def create_static_lib(self, objects: list[str], *args: Any, **kwargs: Any) -> None:
        """Create an archive of objects that setuptools compiled itself."""
        self._check_not_recorded(objects, "an archive")
        super().create_static_lib(objects, *args, **kwargs)

    def link(self, target_desc: str, objects: Any, output_filename: str, *args: Any, **kwargs: Any) -> None:
        """Build a shared object from the recorded command lines."""
        objects = list(objects)
        link = partial(super().link, target_desc, objects, output_filename, *args, **kwargs)
        # setuptools 80 and older support --dry-run.
        if not any(name in self.recorded.units for name in objects) or getattr(self, "dry_run", False):
            link()
            return
        if target_desc == self.EXECUTABLE:
            self._check_not_recorded(objects, "a program")
        units = {name: self.recorded.units.pop(name) for name in objects if name in self.recorded.units}
        command = _command_of_linker(link, frozenset(units))
        others = [word for word in command if word not in units]
        target = others.pop(others.index("-o") + 1)
        others.remove("-o")
        first = command.index(objects[0])
        self._build(list(units.values()), tuple(others[:first]), tuple(_absolute(others[first:])), Path(target))
        self.recorded.device_link = ()

    def _build(self, units: list[Unit], linker: tuple[str, ...], flags: tuple[str, ...], target: Path) -> None:
        compilers = [find_cxx(), Compiler(Path(shutil.which(linker[0]) or linker[0]))]
        if any(unit.source.suffix in nvcc.SUFFIXES for unit in units):
            compilers.append(nvcc.compiler())
        plan = Plan(
            name=target.name.partition(".")[0],
            sources=tuple(unit.source for unit in units),
            abi="full",
            product="python_module",
            include_dirs=_own_include_dirs(units),
            commands=Commands(tuple(compilers), tuple(units), linker, flags, self.recorded.device_link),
        )
        try:
            artefact = build_plan(plan, progress=Progress(plan.name, verbose=self.verbose_steps))
            report.add(copy_to(artefact, target.absolute()), artefact)
        except OpwrightError as error:
            # setuptools prints it without a traceback, and lets optional extensions fail.
            kind = LinkError if " does not link" in str(error).partition("\n")[0] else CompileError
            raise kind(str(error)) from error
        if artefact.log:
            sys.stderr.write(f"{artefact.log}\n")

    def _check_not_recorded(self, objects: Iterable[str], what: str) -> None:
        if names := [name for name in objects if name in self.recorded.units]:
            msg = f"{', '.join(names)}: opwright's BuildExtension builds shared objects, not {what} from these objects"
            raise BuildError(msg)


def record(compiler: Any, *, verbose: bool) -> Recording:
    """Make `compiler`, as configured by setuptools and the project, record what it compiles and links.

    Raises:
        BuildError: it does not have a GCC-compatible command line.
    """
    if isinstance(compiler, Recording):
        return compiler
    if compiler.compiler_type != "unix":
        msg = f"the compiler type {compiler.compiler_type!r} is not supported: opwright builds with g++ and clang++"
        raise BuildError(msg)
    kind = type(compiler)
    suffixes = [*compiler.src_extensions, *sorted(nvcc.SUFFIXES - set(compiler.src_extensions))]
    # Modified in place: a project may have changed its flags, and may keep a reference to it. Its type is an attribute
    # of the instance: setuptools creates other compilers from the newest class that has the type "unix".
    compiler.__class__ = type(kind.__name__, (Recording, kind), {"compiler_type": ""})
    compiler.compiler_type = "unix"
    compiler.src_extensions = suffixes
    compiler.recorded = _Recorded()
    compiler.verbose_steps = verbose
    compiler.force = True  # the cache detects changes
    return compiler  # type: ignore[no-any-return]  # its class was changed above


# The objects that `_command_of_linker` is linking.
_linking: ContextVar[frozenset[str]] = ContextVar("_linking", default=frozenset())


class _LinkerStarts(BaseException):  # not an Exception, which setuptools may catch
    """Raised in place of starting the linker, with its command line."""


def _command_of_linker(link: Callable[[], None], objects: frozenset[str]) -> list[str]:
    """The command line with which `link` would start the linker, which does not start.

    Python itself reports the programs that it starts, so the result does not depend on the functions that setuptools
    calls on the way, which are private and change.

    Raises:
        LinkError: `link` started no program that links `objects`, as far as Python reports.
    """
    _watch()
    token = _linking.set(objects)
    cause = None
    try:
        link()
    except _LinkerStarts as starts:
        return list(starts.args)
    except LinkError as error:
        cause = error  # of a linker that did start, and found no objects
    finally:
        _linking.reset(token)
    msg = (
        f"setuptools {setuptools.__version__} links in a way that opwright does not recognize: expected it to start a "
        f"program whose arguments include -o and each object, such as {min(objects)}. Install a release that opwright "
        f'is tested with: pip install "setuptools<={NEWEST_TESTED}"'
    )
    raise LinkError(msg) from cause


@cache  # Python cannot remove an audit hook
def _watch() -> None:
    sys.addaudithook(_stop_linker)


def _stop_linker(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that raises `_LinkerStarts` if this thread is linking and starts the linker."""
    if event in {"subprocess.Popen", "os.posix_spawn"} and (objects := _linking.get()):
        command = [os.fsdecode(word) for word in arguments[1]]
        if objects.union(["-o"]).issubset(command):
            raise _LinkerStarts(*command)


def _of(given: Any, compiler: str) -> list[str]:
    """The flags for one compiler, from a list for all compilers or from a dict."""
    flags = given.get(compiler, []) if isinstance(given, dict) else given
    return [str(flag).strip() for flag in flags]


def _with_system_headers(words: Iterable[str]) -> list[str]:
    """The words, with PyTorch's headers as system headers: their warnings are not the author's."""
    torchs = {f"-I{folder}": ["-isystem", str(folder)] for folder in find_pytorch().include_dirs}
    return [replaced for word in words for replaced in torchs.get(word, [word])]


def _own_include_dirs(units: Iterable[Unit]) -> tuple[Path, ...]:
    """The include directories of the project and of Python, in order."""
    words = (word for unit in units for word in unit.command)
    return tuple(Path(word[2:]) for word in dict.fromkeys(words) if word.startswith("-I") and len(word) > 2)


def _cxxflags(known: Iterable[str]) -> list[str]:
    """The words of `$CXXFLAGS`, which only some releases of setuptools pass for C++ sources."""
    return [word for word in shlex.split(os.environ.get("CXXFLAGS", "")) if word not in known]


def _absolute(words: Iterable[str]) -> list[str]:
    """The words, with relative paths made absolute, because compilers run in another folder."""
    result: list[str] = []
    for word in words:
        flag = next((flag for flag in _PATH_FLAGS if word.startswith(flag) and word != flag), None)
        if result and result[-1] in _PATH_FLAGS:
            result.append(_existing(word))
        elif flag is not None:
            result.append(flag + _existing(word.removeprefix(flag)))
        else:
            result.append(word)
    return result


def _existing(path: str) -> str:
    return str(Path(path).absolute()) if Path(path).exists() else path
