"""Builds in folders, and through compilers, with unusual names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
from opwright.errors import BuildError, ToolchainError
from opwright.toolchain.compiler import find_cxx
from tests.integration.conftest import write_program

if TYPE_CHECKING:
    from pathlib import Path

_GXX = str(shutil.which("g++"))


_NAMES = [*(f"a{letter}b" for letter in " \\\t|$#:;'&%"), "a\\ b", "a\\\\ b", "-a", "ä", "a\udcffb"]


def _sources(folder: Path, name: str = "a.cpp", function: str = "a") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.h").write_text("#define ANSWER 1\n")
    source = folder / name
    source.write_text(f'#include "a.h"\nint {function}() {{ return ANSWER; }}\n')
    return source


@pytest.mark.parametrize("where", ["folder", "file"])
def test_sources_with_any_name_are_built_once_and_again_when_their_header_changes(folder: Path, where: str) -> None:
    sources = [
        _sources(folder / name, function=f"f{number}")
        if where == "folder"
        else _sources(folder, f"{name}.cpp", function=f"f{number}")
        for number, name in enumerate(_NAMES)
    ]
    plan = plan_sources("mine", sources, cflags=["-O0"])
    assert set(build_plan(plan).compiled) == set(sources)
    assert build_plan(plan).compiled == ()
    for header in {source.parent / "a.h" for source in sources}:
        header.write_text("#define ANSWER 2\n")
    assert set(build_plan(plan).compiled) == set(sources)


@pytest.mark.parametrize("name", ["a\nb", "a\rb"], ids=ascii)
def test_a_line_break_in_a_name_is_rejected_with_a_message_of_one_line(folder: Path, name: str) -> None:
    with pytest.raises(
        BuildError, match=r"^.* contains a line break, which ninja does not support: rename the file"
    ) as e:
        build_plan(plan_sources("mine", [_sources(folder / name)]))
    assert len(str(e.value).splitlines()) == 1


def test_the_command_line_builds_a_source_whose_name_has_another_encoding(folder: Path) -> None:
    library = folder / "a\udcffb"
    library.mkdir()
    (library / "kernel.cpp").write_text("#include <opwright/op.h>\n")
    (library / "op.py").write_text(
        "import opwright\nfrom torch import Tensor\nlibrary = opwright.Library('odd_name', sources=['kernel.cpp'])\n"
        "@library.op\ndef f(x: Tensor) -> Tensor:\n    return x\n"
    )
    command: list[str | Path] = [sys.executable, "-m", "opwright", "build", library, "-v", "-o", library / "out.so"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert os.fsencode(library / "out.so") in done.stdout
    assert (library / "out.so").is_file()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "launcher",
    [pytest.param("ccache", marks=pytest.mark.needs("ccache")), "env", "env LC_ALL=C", "nice -n 1", "{script}"],
)
@pytest.mark.parametrize("flags", ["", " -DANSWER=1 -isystem /usr/include"])
def test_a_compiler_behind_a_launcher_compiles_and_links(
    folder: Path, monkeypatch: pytest.MonkeyPatch, launcher: str, flags: str
) -> None:
    script = write_program(folder / "launch", 'exec "$@"')
    monkeypatch.setenv("CCACHE_DIR", str(folder / "ccache"))
    monkeypatch.setenv("CXX", f"{launcher.format(script=script)} g++{flags}")
    source = _sources(folder)
    artefact = build_plan(plan_sources("mine", [source]))
    assert artefact.compiled == (source,)
    assert artefact.path.is_file()
    cxx = find_cxx()
    assert cxx.host == "g++"
    assert cxx.flags == flags.split()
    assert cxx.launcher[0].endswith(launcher.split(maxsplit=1)[0].format(script=script))


@pytest.mark.needs("ccache")
def test_another_compiler_of_the_same_name_behind_a_launcher_causes_another_build(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example an upgrade of g++, which does not change ccache's own g++, a link to ccache."""
    links, programs = folder / "links", folder / "programs"
    for place in (links, programs):
        place.mkdir()
    (links / "g++").symlink_to(shutil.which("ccache") or "")
    write_program(programs / "g++", f'exec {_GXX} "$@"')
    monkeypatch.setenv("CCACHE_DIR", str(folder / "ccache"))
    monkeypatch.setenv("PATH", f"{links}:{programs}:{os.environ['PATH']}")
    source = _sources(folder)
    assert build_plan(plan_sources("mine", [source])).compiled == (source,)
    assert build_plan(plan_sources("mine", [source])).compiled == ()
    write_program(programs / "g++", f'exec {_GXX} -O1 "$@"')
    assert build_plan(plan_sources("mine", [source])).compiled == (source,)


def test_a_path_with_a_space_requires_quotes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = write_program(folder / "my compiler", f'exec {_GXX} "$@"')
    monkeypatch.setenv("CXX", f"'{compiler}' -DX")
    assert build_plan(plan_sources("mine", [_sources(folder)])).compiled
    monkeypatch.setenv("CXX", f"'{compiler}")
    with pytest.raises(
        ToolchainError, match=r"^\$CXX, .*, is not a valid command line \(No closing quotation\): correct its"
    ):
        find_cxx()
