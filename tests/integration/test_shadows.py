"""Tests that the next build reads a file that appears where a compiler or the linker did not find one before."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from opwright.builder.compile import Artefact, build_plan
from opwright.builder.plan import plan_sources
from opwright.cache.cache import Cache
from tests.integration.conftest import answer_of, write, write_program

if TYPE_CHECKING:
    from pathlib import Path

_ANSWER = 'extern "C" __attribute__((visibility("default"))) int answer()'
_INCLUDES = f"#include <answer.h>\n{_ANSWER} {{ return ANSWER; }}\n"
_QUOTES = f'#include "answer.h"\n{_ANSWER} {{ return ANSWER; }}\n'
_ASKS = f"""
#if {{question}}
#define ANSWER 2
#else
#define ANSWER 1
#endif
{_ANSWER} {{{{ return ANSWER; }}}}
"""
_ONE, _TWO = "#define ANSWER 1\n", "#define ANSWER 2\n"


def _build(folder: Path, flags: str = "", *, source: str = "a.cpp", ldflags: str = "") -> Artefact:
    words, linked = (text.format(folder).split() for text in (flags, ldflags))
    return build_plan(plan_sources("mine", [folder / source], cflags=["-O0", *words], ldflags=linked))


_APPEARS = {
    "a-folder-of-I-that-is-missing": (
        {"a.cpp": _INCLUDES, "b/answer.h": _ONE},
        "-I{0}/missing/too -I{0}/b",
        "missing/too/answer.h",
    ),
    "isystem": (
        {"a.cpp": _INCLUDES, "b/answer.h": _ONE, "s/other.h": ""},
        "-isystem{0}/s -isystem {0}/b",
        "s/answer.h",
    ),
    "iquote": ({"a.cpp": _QUOTES, "b/answer.h": _ONE, "q/other.h": ""}, "-iquote {0}/q -I{0}/b", "q/answer.h"),
    "idirafter": ({"a.cpp": _INCLUDES, "b/answer.h": _ONE}, "-idirafter {0}/a -idirafter {0}/b", "a/answer.h"),
    "next-to-the-including-header": (
        {"a.cpp": _QUOTES.replace("answer", "x/outer", 1), "x/outer.h": '#include "answer.h"\n', "b/answer.h": _ONE},
        "-I{0}/b",
        "x/answer.h",
    ),
    "include_next": (
        {"a.cpp": _INCLUDES, "first/answer.h": "#include_next <answer.h>\n", "second/b.h": "", "third/answer.h": _ONE},
        "-I{0}/first -I{0}/second -I{0}/third",
        "second/answer.h",
    ),
    "a-name-with-dots": (
        {"a.cpp": _QUOTES.replace("answer.h", "sub/../answer.h"), "b/answer.h": _ONE, "b/sub/b.h": "", "sub/b.h": ""},
        "-I{0}/b",
        "answer.h",
    ),
    "a-header-of-the-command-line": (
        {"a.cpp": f"{_ANSWER} {{ return ANSWER; }}\n", "b/answer.h": _ONE},
        "-I{0}/first -I{0}/b -include answer.h",
        "first/answer.h",
    ),
    "has_include-in-quotes": ({"a.cpp": _ASKS.format(question='__has_include("extra.h")')}, "", "extra.h"),
    "has_include-in-a-folder-that-is-missing": (
        {"a.cpp": _ASKS.format(question="__has_include(<sub/extra.h>)")},
        "-I{0}/later",
        "later/sub/extra.h",
    ),
    "has_include-in-a-header": (
        {"a.cpp": '#include "asks.h"\n', "b/asks.h": _ASKS.format(question='__has_include ( "extra.h" )')},
        "-I{0}/b",
        "b/extra.h",
    ),
    "a-name-that-is-a-macro": (
        {"a.cpp": f"#define NAME <answer.h>\n#include NAME\n{_ANSWER} {{ return ANSWER; }}\n", "b/answer.h": _ONE},
        "-I{0}/first -I{0}/b",
        "first/answer.h",
    ),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize(("files", "flags", "appears"), _APPEARS.values(), ids=_APPEARS)
def test_a_header_that_appears_is_read(folder: Path, files: dict[str, str], flags: str, appears: str) -> None:
    write(folder, files)
    top = next(path for path in (*reversed((folder / appears).parents), folder / appears) if not path.exists())
    first = _build(folder, flags)
    assert answer_of(first) == 1
    assert _build(folder, flags).compiled == ()
    write(folder, {appears: _TWO})
    assert answer_of(_build(folder, flags)) == 2
    top.rename(folder / "gone")
    again = _build(folder, flags)
    assert (again.path, again.compiled) == (first.path, ())


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_a_header_that_appears_in_a_folder_from_an_environment_variable_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    write(folder, {"a.cpp": _INCLUDES, "b/answer.h": _ONE})
    monkeypatch.setenv(variable, f"{folder}/first:{folder}/b")
    assert answer_of(_build(folder)) == 1
    write(folder, {"first/answer.h": _TWO})
    assert answer_of(_build(folder)) == 2


def test_a_folder_replaced_by_a_header_or_a_retargeted_link_is_detected(folder: Path) -> None:
    write(
        folder,
        {
            "a.cpp": _INCLUDES,
            "first/answer.h/file": "",
            "second/answer.h": _ONE,
            "third/answer.h": "#define ANSWER 3\n",
        },
    )
    (folder / "link").symlink_to("second")
    flags = "-I{0}/first -I{0}/link"
    assert answer_of(_build(folder, flags)) == 1
    assert _build(folder, flags).compiled == ()
    (folder / "link").unlink()
    (folder / "link").symlink_to("third")
    assert answer_of(_build(folder, flags)) == 3
    shutil.rmtree(folder / "first/answer.h")
    write(folder, {"first/answer.h": _TWO})
    assert answer_of(_build(folder, flags)) == 2


def test_a_broken_link_whose_target_appears_is_detected(folder: Path) -> None:
    write(folder, {"a.cpp": _INCLUDES, "b/answer.h": _ONE, "first/other.h": ""})
    (folder / "first/answer.h").symlink_to(folder / "later.h")
    assert answer_of(_build(folder, "-I{0}/first -I{0}/b")) == 1
    assert _build(folder, "-I{0}/first -I{0}/b").compiled == ()
    write(folder, {"later.h": _TWO})
    assert answer_of(_build(folder, "-I{0}/first -I{0}/b")) == 2


def test_a_header_that_appears_while_the_compiler_runs_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {"a.cpp": _INCLUDES, "b/answer.h": _ONE, "first/other.h": ""})
    late = f"test -e {folder}/log || {{ touch {folder}/log; echo '#define ANSWER 2' > {folder}/first/answer.h; }}"
    program = f'{shutil.which("g++")} "$@" || exit\ncase "$*" in *" -c "*) {late};; esac'
    monkeypatch.setenv("CXX", str(write_program(folder / "g++", program)))
    assert answer_of(_build(folder, "-I{0}/first -I{0}/b")) == 2


def test_the_default_folders_of_the_compiler_are_tracked(folder: Path) -> None:
    write(folder, {"a.cpp": "#include <unistd.h>\nint a() { return 1; }\n"})
    _build(folder)
    absent: dict[str, list[str]] = {}
    for record in (Cache().root / "recipes").iterdir():
        for variant in json.loads(record.read_text()):
            absent |= {place: [*absent.get(place, []), *names] for place, names in variant["absent"].items()}
    assert "unistd.h" in absent["/usr/local/include"]


@pytest.mark.sample(of="precompiled headers")
def test_a_header_that_shadows_a_precompiled_one_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAX_JOBS", raising=False)
    answers = f"#ifdef HIDDEN\n{_TWO}#else\n{_ONE}#endif\n"
    source = f"#include <opwright/check.h>\n{answers}{_ANSWER} {{ return ANSWER; }}\n"
    hidden = "torch/headeronly/macros/Macros.h"

    def build(edit: str) -> int:
        write(folder, {"a.cpp": f"{source}// {edit}\n"})
        return answer_of(build_plan(plan_sources("mine", [folder / "a.cpp"], include_dirs=[folder / "own"])))

    assert [build("first"), build("second"), build("third")] == [1, 1, 1]
    write(folder, {f"own/{hidden}": f"#define HIDDEN\n#include_next <{hidden}>\n"})
    assert [build("third"), build("fourth")] == [2, 2]
    assert len(list((Cache().root / "precompiled").iterdir())) <= 1  # they are not rebuilt


@pytest.mark.needs("nvcc")
def test_a_header_that_appears_for_a_cuda_source_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    write(
        folder, {"a.cu": _INCLUDES.replace("<answer.h>", '"b.h"'), "b/b.h": "#include <answer.h>", "b/answer.h": _ONE}
    )
    plan = plan_sources("mine", [folder / "a.cu"], include_dirs=[folder / "first", folder / "b"])
    assert answer_of(build_plan(plan)) == 1
    assert build_plan(plan).compiled == ()
    write(folder, {"first/answer.h": _TWO})
    assert answer_of(build_plan(plan)) == 2


_EMBEDS = f"""
asm(".data\\nheld: {{}} {{}}\\n.previous\\n");
extern "C" {{{{ extern char held __attribute__((visibility("hidden"))); }}}}
{_ANSWER} {{{{ return held - '0'; }}}}
"""


@pytest.mark.parametrize("name", ["{0}/held.bin", "held.bin"])
def test_a_change_to_a_file_that_assembly_code_includes_is_detected(folder: Path, name: str) -> None:
    text = _EMBEDS.format(".incbin", f'\\"{name.format(folder)}\\"')
    write(folder, {"a.cpp": text, "held.bin": "1"})
    assert answer_of(_build(folder, "-I{0}/first -I{0}")) == 1
    assert _build(folder, "-I{0}/first -I{0}").compiled == ()
    write(folder, {"held.bin": "3"})
    assert answer_of(_build(folder, "-I{0}/first -I{0}")) == 3


def test_a_source_whose_assembly_includes_are_unknown_is_always_compiled(folder: Path) -> None:
    write(folder, {"a.cpp": _EMBEDS.format(".incbin", '" NAME "'), "held.bin": "1"})
    flags = '-DNAME="\\"{0}/held.bin\\""'
    for answer in (1, 1, 4):
        write(folder, {"held.bin": str(answer)})
        artefact = _build(folder, flags)
        assert (answer_of(artefact), len(artefact.compiled)) == (answer, 1)


def _library(folder: Path, place: str, answer: int, *, shared: bool = False) -> None:
    """Build the library `half`, whose `half()` returns `answer`."""
    (folder / place).mkdir(parents=True, exist_ok=True)
    write(folder, {"half.cpp": f"int half() {{ return {answer}; }}\n"})
    made = folder / place / ("libhalf.so" if shared else "half.o")
    how = ["-shared"] if shared else ["-c"]
    subprocess.run(["g++", "-fPIC", *how, folder / "half.cpp", "-o", made], check=True)
    if not shared:
        subprocess.run(["ar", "rcsD", folder / place / "libhalf.a", made], check=True)


_CALLS = f"int half();\n{_ANSWER} {{ return half(); }}\n"


@pytest.mark.parametrize("shared", [False, True])
def test_a_library_that_appears_in_a_missing_folder_is_linked(folder: Path, shared: bool) -> None:
    write(folder, {"a.cpp": _CALLS})
    _library(folder, "b", 1)
    flags = "-L{0}/first -L{0}/b -lhalf -Wl,-rpath,{0}/first"
    assert answer_of(_build(folder, ldflags=flags)) == 1
    assert _build(folder, ldflags=flags).path == _build(folder, ldflags=flags).path
    _library(folder, "first", 2, shared=shared)
    assert answer_of(_build(folder, ldflags=flags)) == 2


def test_a_library_that_appears_in_a_folder_from_an_environment_variable_is_linked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {"a.cpp": _CALLS})
    _library(folder, "b", 1)
    (folder / "first").mkdir()  # the compiler passes only existing folders to the linker
    monkeypatch.setenv("LIBRARY_PATH", f"{folder}/first:{folder}/b")
    assert answer_of(_build(folder, ldflags="-lhalf")) == 1
    _library(folder, "first", 2)
    assert answer_of(_build(folder, ldflags="-lhalf")) == 2


def test_a_shared_library_that_appears_next_to_an_archive_is_linked(folder: Path) -> None:
    write(folder, {"a.cpp": _CALLS})
    _library(folder, "b", 1)
    flags = "-L{0}/b -lhalf -Wl,-rpath,{0}/b"
    assert answer_of(_build(folder, ldflags=flags)) == 1
    _library(folder, "b", 2, shared=True)
    assert answer_of(_build(folder, ldflags=flags)) == 2
