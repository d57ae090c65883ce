from __future__ import annotations

from pathlib import Path

import pytest
from setuptools import Distribution, Extension

from opwright.builder.setuptools.command import BuildExtension
from opwright.builder.setuptools.recording import record
from opwright.errors import BuildError
from opwright.toolchain.pytorch import find_pytorch


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


def test_an_unsupported_compiler_is_rejected() -> None:
    class Other:
        compiler_type = "msvc"

    with pytest.raises(BuildError, match=r"the compiler type 'msvc' is not supported"):
        record(Other(), verbose=False)
