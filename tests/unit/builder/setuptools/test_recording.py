from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import setuptools
from setuptools import Distribution, Extension
from setuptools.errors import LinkError

from opwright.builder.setuptools import NEWEST_TESTED
from opwright.builder.setuptools.command import BuildExtension
from opwright.builder.setuptools.recording import _command_of_linker, record
from opwright.errors import BuildError
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "include").mkdir()
    (tmp_path / "a.cpp").touch()
    return tmp_path


def compiler_of(command: BuildExtension) -> object:
    """The compiler that setuptools configures."""
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.sysconfig import customize_compiler

    compiler = new_compiler(compiler="unix", force=bool(command.force))
    customize_compiler(compiler)
    return compiler


def recorded(extra: object, folder: Path, **variables: str) -> list[str]:
    """The recorded command line for a source with these flags."""
    command = BuildExtension(Distribution({"name": "mine", "ext_modules": [Extension("a", ["a.cpp"])]}))
    compiler = record(compiler_of(command), verbose=False)
    torch = str(find_pytorch().include_dirs[0])
    compiler.compile(["a.cpp"], output_dir="build", include_dirs=["include", torch], extra_postargs=extra)  # type: ignore[arg-type]  # as in PyTorch
    (unit,) = compiler.recorded.units.values()
    assert unit.source == folder / "a.cpp"
    return list(unit.command)


def test_folders_are_relative_to_the_project(folder: Path) -> None:
    words = recorded(["-iquote", "include", "-Iinclude", "-Ielsewhere"], folder)
    assert words[words.index("-iquote") + 1] == str(folder / "include")
    assert words.count(f"-I{folder / 'include'}") == 2
    assert "-Ielsewhere" in words


def test_pytorchs_headers_are_system_headers(folder: Path) -> None:
    words = recorded([], folder)
    assert words[words.index("-isystem") + 1] == str(find_pytorch().include_dirs[0])


def test_a_standard_is_added_only_if_there_is_none(folder: Path) -> None:
    assert [word for word in recorded({"cxx": ["-O1"]}, folder) if word.startswith("-std=")] == ["-std=c++20"]
    assert [word for word in recorded(["-std=c++23"], folder) if word.startswith("-std=")] == ["-std=c++23"]


def test_flags_of_the_environment_are_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-fno-math-errno")
    monkeypatch.setenv("CXXFLAGS", "-fno-plt")
    monkeypatch.setenv("CPPFLAGS", "-DFROM_CPPFLAGS")
    assert {"-fno-math-errno", "-fno-plt", "-DFROM_CPPFLAGS"} <= set(recorded([], folder))


def test_sources_with_the_same_name_have_separate_objects(folder: Path) -> None:
    compiler = record(compiler_of(BuildExtension(Distribution())), verbose=False)
    assert len(set(compiler.object_filenames(["a.cpp", "a.cc", "a.cu", "sub/a.cpp"]))) == 4


@pytest.mark.parametrize(
    "start",
    [
        subprocess.check_call,
        lambda command: subprocess.Popen([os.fsencode(word) for word in command], executable="/bin/false"),
        lambda command: os.posix_spawn("/bin/false", command, {}),
    ],
)
def test_the_command_line_of_the_linker_is_recorded_whichever_function_starts_it(
    start: Callable[[list[str]], object],
) -> None:
    linker = ["cc", "-shared", "b.o", "a.o", "-o", "it.so"]

    def link() -> None:
        subprocess.check_call(["true", "a.o"])  # another program
        start(linker)

    assert _command_of_linker(link, frozenset({"a.o", "b.o"})) == linker
    subprocess.check_call(["true", *linker])  # programs start again


def link_in_another_way(error: Exception | None, *, dry_run: bool = False) -> None:
    """Links with a setuptools that starts no linker, as far as Python reports."""
    compiler: Any = compiler_of(BuildExtension(Distribution()))

    class Future(type(compiler)):  # type: ignore[misc]  # mypy does not accept a value as a base class
        def link(self, *_: Any, **__: Any) -> None:
            if error:
                raise error

    compiler.__class__ = Future
    compiler.dry_run = dry_run
    objects = record(compiler, verbose=False).compile(["a.cpp"], output_dir="build")
    compiler.link(compiler.SHARED_OBJECT, objects, "a.so")


@pytest.mark.parametrize("error", [None, LinkError("exit code 1")])
def test_a_setuptools_that_links_in_an_unknown_way_is_rejected(folder: Path, error: Exception | None) -> None:
    message = (
        f"setuptools {setuptools.__version__} links in a way that opwright does not recognize: expected it to start a "
        "program whose arguments include -o and each object, such as build/a.cpp.o. Install a release that opwright is "
        f'tested with: pip install "setuptools<={NEWEST_TESTED}"'
    )
    with pytest.raises(LinkError, match=f"^{re.escape(message)}$"):
        link_in_another_way(error)


def test_a_dry_run_links_nothing(folder: Path) -> None:
    link_in_another_way(None, dry_run=True)


def test_an_unsupported_compiler_is_rejected() -> None:
    class Other:
        compiler_type = "msvc"

    with pytest.raises(BuildError, match=r"the compiler type 'msvc' is not supported"):
        record(Other(), verbose=False)
