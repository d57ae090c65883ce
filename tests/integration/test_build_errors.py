"""What each front end shows when real compilers and linkers fail."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
from opwright.errors import BridgeError, BuildError, ToolchainError
from opwright.host import install
from opwright.loader import bridge
from tests.integration.conftest import write, write_program
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path

CALLS_UNDEFINED = "int elsewhere();\nint f() { return elsewhere(); }\n"
CALLS_ARCHIVE = 'extern "C" int decompress();\nint f() { return decompress(); }\n'
ARCHIVED = 'extern "C" int inflate();\nextern "C" int decompress() { return inflate(); }\n'
HOST = """\
cmake_minimum_required(VERSION 3.18)
project(host LANGUAGES CXX)
add_library(crypto STATIC zlib.cpp)
add_executable(host main.cpp)
target_link_libraries(host PRIVATE crypto)
install(TARGETS host)
"""
SETUP = """\
from setuptools import setup
from opwright.cpp_extension import BuildExtension, CppExtension
setup(ext_modules=[CppExtension("a", ["a.cpp"], libraries=["no_such_library"])], cmdclass={"build_ext": BuildExtension})
"""
LINKERS = [name for name in ("bfd", "gold", "lld", "mold") if shutil.which(f"ld.{name}")]


pytestmark = pytest.mark.usefixtures("folder")


def build_error(folder: Path, source: str, *ldflags: str) -> str:
    """The message of the error that a build of `source` raises, without its first line."""
    (folder / "a.cpp").write_text(source)
    with pytest.raises(BuildError) as raised:
        build_plan(plan_sources("mine", [folder / "a.cpp"], cflags=["-O0"], ldflags=ldflags))
    return str(raised.value).partition("\n")[2]


def archive(folder: Path) -> Path:
    (folder / "zlib.cpp").write_text(ARCHIVED)
    subprocess.run(["g++", "-fPIC", "-c", "zlib.cpp"], cwd=folder, check=True)
    subprocess.run(["ar", "rcs", "libcrypt.a", "zlib.o"], cwd=folder, check=True)
    return folder / "libcrypt.a"


@pytest.mark.parametrize("linker", LINKERS)
def test_each_linkers_error_names_the_archive_and_the_object_in_it(linker: str, folder: Path) -> None:
    library = archive(folder)
    message = build_error(folder, CALLS_ARCHIVE, str(library), f"-fuse-ld={linker}")
    assert message.startswith(
        f"undefined symbol inflate, which zlib.o in {library} needs\n"
        "  fix: link the libraries that libcrypt.a itself requires after it"
    )


def test_the_builder_names_the_files_of_a_missing_library(folder: Path) -> None:
    message = build_error(folder, "int f() { return 1; }\n", "-lno_such_library")
    assert message.startswith(
        "the library -lno_such_library was not found: no folder that the linker searched contains "
        "libno_such_library.so or libno_such_library.a\n  fix: install its development package"
    )


def test_the_linkers_errors_are_understood_in_every_language(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Few machines have the messages of a second language, so this compiler has one of them itself.
    fails = 'case "$LC_ALL $*" in "C "*) ;; *-shared*) echo "ld: -lfoo kann nicht gefunden werden"; exit 1;; esac'
    program = write_program(folder / "g++", f'{fails}\nexec {shutil.which("g++")} "$@"')
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert build_error(folder, "int f() { return 1; }\n", "-lfoo").startswith("the library -lfoo was not found")


def test_load_inline_names_the_source_that_needs_a_symbol() -> None:
    message = (
        r" does not link:\nundefined symbol elsewhere\(\), which \S+\.cpp needs\n"
        "  fix: add the source that defines it to sources="
    )
    with pytest.raises(BuildError, match=message):
        opwright.load_inline("calls_undefined", CALLS_UNDEFINED, no_implicit_headers=True, is_python_module=False)


def test_a_setup_py_names_the_files_of_a_missing_library(folder: Path) -> None:
    (folder / "a.cpp").write_text("int f() { return 1; }\n")
    (folder / "setup.py").write_text(SETUP)
    command = [*python(), "-m", "setup", "-q", "build_ext", "--inplace"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert " does not link:\nthe library -lno_such_library was not found: no folder that" in ended.stderr


def test_the_bridge_names_the_symbol_that_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = folder / "bridge.cpp"
    # Undefined symbols of a library against PyTorch's full C++ API are an error only if they are hidden.
    source.write_text(f'__attribute__((visibility("hidden"))) {CALLS_UNDEFINED}')
    monkeypatch.setattr(bridge, "SOURCE", source)
    monkeypatch.setattr(bridge, "_bridges", {})
    with pytest.raises(BridgeError, match=r"does not link:\nundefined symbol elsewhere\(\), which bridge\.cpp needs\n"):
        bridge.build_bridge()
    with pytest.warns(
        RuntimeWarning, match=r"does not link: undefined symbol elsewhere\(\), which bridge\.cpp needs\)"
    ):
        assert not bridge.attach()


@pytest.mark.needs("cmake")
def test_the_hosts_build_names_the_archive_and_the_object_in_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpp = folder / "host" / "cpp"
    (folder / "__init__.py").touch()
    main = CALLS_UNDEFINED + CALLS_ARCHIVE.replace("int f()", "int main()").replace("return", "return f() +")
    write(cpp, {"CMakeLists.txt": HOST, "zlib.cpp": ARCHIVED, "main.cpp": main})
    monkeypatch.setattr(install, "_CPP", cpp)
    with pytest.raises(BuildError) as raised:
        install.install_host()
    shown = str(raised.value)
    assert shown.startswith(
        "the host cannot be built:\nundefined symbol elsewhere(), which main.cpp needs\n"
        "  likely cause: the headers and the library of a package are of different versions: reinstall both\n"
        "undefined symbol inflate, which zlib.cpp.o in libcrypto.a needs\n"
        "  fix: link the libraries that libcrypto.a itself requires after it, or link libcrypto.so instead of it\n"
    )


def test_a_missing_header_of_an_installed_package_is_an_error_that_names_the_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "include").mkdir()
    (folder / "include" / "mine.h").touch()
    (folder / "mine.pc").write_text(f"Name: mine\nDescription: mine\nVersion: 1\nCflags: -I{folder}/include\n")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(folder))
    shown = build_error(folder, "#include <mine.h>\n").splitlines()
    assert shown[0].endswith("a.cpp:1:10: fatal error: mine.h: No such file or directory")
    assert shown[3].startswith('  fix: an installed package contains it: add packages=["mine"], or the flags that ')


def test_a_compiler_that_is_too_old_is_rejected_before_it_compiles_anything(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_program(
        folder / "g++",
        f'echo "$@" >> {folder}/started\n'
        f'[ "$1" = --version ] && echo "g++ (Debian 9.3.0) 9.3.0" || exec {shutil.which("g++")} "$@"',
    )
    monkeypatch.setenv("CXX", str(program))
    (folder / "a.cpp").write_text("int f() { return 1; }\n")
    with pytest.raises(ToolchainError, match=r"^g\+\+ 9\.3\.0 \(\S+\) is too old: opwright compiles C\+\+20"):
        build_plan(plan_sources("mine", [folder / "a.cpp"]))
    assert (folder / "started").read_text() == "--version\n"
