"""Files change before a build reads them, while it waits, while it compiles, and between two builds."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from opwright.builder.compile import Artefact, build_plan
from opwright.builder.plan import plan_sources
from opwright.builder.recipes import compose
from opwright.cache.cache import Cache, digest
from opwright.errors import BuildError
from opwright.report.progress import Progress
from tests.integration.conftest import answer_of, write, write_program

if TYPE_CHECKING:
    from pathlib import Path

_GXX = shutil.which("g++")
_SHOWN = 'extern "C" __attribute__((visibility("default"))) int answer()'
_SOURCE = f'#include "answer.h"\n{_SHOWN} {{ return ANSWER; }}\n'
_HALF = f"int half();\n{_SHOWN} {{ return half(); }}\n"


@pytest.fixture
def folder(folder: Path) -> Path:
    return write(folder, {"answer.h": "#define ANSWER 1\n", "a.cpp": _SOURCE})


def _build(folder: Path, **options: object) -> Artefact:
    return build_plan(plan_sources("mine", [folder / "a.cpp"], cflags=["-O0"], **options))  # type: ignore[arg-type]  # the options of a test


def _meddler(folder: Path, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    """Make the compiler run the shell's commands `then` after each compilation."""
    after = f"cd {folder}; echo >> log; count=$(wc -l < log)\n{then}"
    meddler = write_program(folder / "g++", f'{_GXX} "$@" || exit\ncase "$*" in *" -c "*)\n{after}\n;; esac\nexit 0')
    monkeypatch.setenv("CXX", str(meddler))


def test_a_source_that_changes_while_its_build_waits_is_built_in_its_new_state(folder: Path) -> None:
    (folder / "a.cpp").write_text(_SOURCE.replace("ANSWER;", "1;"))
    plan = plan_sources("mine", [folder / "a.cpp"], cflags=["-O0"])
    recipes = compose(plan)
    keys = [recipes.object_key(unit, sha256(unit.source.read_bytes()).hexdigest()) for unit in recipes.units]
    waits, artefacts = threading.Event(), []

    class Watched(Progress):
        def note(self, text: str) -> None:
            if "waiting for it" in text:
                waits.set()

    build = threading.Thread(target=lambda: artefacts.append(build_plan(plan, progress=Watched("mine"))))
    with Cache().building(digest(["mine", *keys]), lambda _: None):
        build.start()
        assert waits.wait(100)
        (folder / "a.cpp").write_text(_SOURCE.replace("ANSWER;", "2;"))
    build.join()
    assert answer_of(artefacts[0]) == 2
    assert _build(folder).path == artefacts[0].path
    (folder / "a.cpp").write_text(_SOURCE.replace("ANSWER;", "1;"))
    assert answer_of(_build(folder)) == 1


@pytest.mark.parametrize(
    "change",
    [
        "echo '#define ANSWER 2' > answer.h",
        "echo '#define ANSWER 2' > new.h; touch -d 2001-01-01 new.h; mv new.h answer.h",
        "echo '#define ANSWER 2' > new.h; touch -r answer.h new.h; mv new.h answer.h",
        "echo '#define ANSWER 2' > answer.h; touch -d 2001-01-01 answer.h",
        "rm answer.h; mkdir -p later; echo '#define ANSWER 2' > later/answer.h; ln -s later/answer.h answer.h",
    ],
    ids=["written", "replaced-by-an-older-one", "replaced-by-one-of-the-same-time", "dated-back", "replaced-by-a-link"],
)
def test_a_header_that_changes_while_it_is_compiled_is_compiled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    _meddler(folder, monkeypatch, f"test $count = 1 && {{ {change}; }}")
    artefact = _build(folder)
    assert answer_of(artefact) == 2
    assert [path.name for path in artefact.compiled] == ["a.cpp"]
    assert _build(folder).path == artefact.path


def test_a_source_that_changes_while_it_is_compiled_is_compiled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = "sed 's/ANSWER;/7;/' a.cpp > b; touch -d 2001-01-01 b; mv b a.cpp"
    _meddler(folder, monkeypatch, f"test $count = 1 && {{ {change}; }}")
    assert answer_of(_build(folder)) == 7


def test_a_header_that_changes_while_other_sources_are_compiled_is_compiled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _meddler(folder, monkeypatch, "test $count = 2 && echo '#define ANSWER 3' > answer.h")
    assert answer_of(_build(folder)) == 1
    (folder / "b.cpp").write_text("int b() { return 1; }\n")
    plan = plan_sources("mine", [folder / "a.cpp", folder / "b.cpp"], cflags=["-O0"])
    assert answer_of(build_plan(plan)) == 3


def test_a_header_that_keeps_changing_is_an_error_and_nothing_is_cached(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _meddler(folder, monkeypatch, 'echo "// more" >> answer.h')
    with pytest.raises(
        BuildError,
        match=r"^.*/answer\.h changed while mine was being built, 4 times in a row; nothing was cached\. Build",
    ):
        _build(folder)
    assert not list((folder / "cache").rglob("*.so"))
    assert not list((folder / "cache").rglob("*.o"))


@pytest.mark.parametrize("name", ["a.cpp", "answer.h"])
def test_a_file_dated_in_the_future_is_built_and_found_again(folder: Path, name: str) -> None:
    later = time.time() + 10**6
    os.utime(folder / name, (later, later))
    artefact = _build(folder)
    assert answer_of(artefact) == 1
    assert _build(folder).compiled == ()
    assert _build(folder).path == artefact.path


def test_a_variable_that_the_compiler_reads_is_part_of_the_build(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, answer in (("first", 1), ("second", 2)):
        (folder / name).mkdir()
        (folder / name / "answer.h").write_text(f"#define ANSWER {answer}\n")
    (folder / "answer.h").unlink()
    for name, answer in (("first", 1), ("second", 2), ("first", 1)):
        monkeypatch.setenv("CPATH", str(folder / name))
        assert answer_of(_build(folder)) == answer


def _archive(folder: Path, answer: int) -> None:
    """Create libhalf.a, whose `half()` returns `answer`."""
    (folder / "half.cpp").write_text(f"int half() {{ return {answer}; }}\n")
    subprocess.run([str(_GXX), "-fPIC", "-c", "half.cpp", "-o", "half.o"], cwd=folder, check=True)
    subprocess.run(["ar", "rcsD", "libhalf.a", "half.o"], cwd=folder, check=True)


@pytest.mark.parametrize(
    "flags",
    [
        ["{}/libhalf.a"],
        ["-Wl,--push-state,{}/libhalf.a,--pop-state"],
        ["-L{}", "-lhalf"],
        ["-fuse-ld=bfd", "-L{}", "-lhalf"],
        pytest.param(["-fuse-ld=gold", "-L{}", "-lhalf"], marks=pytest.mark.needs("gold")),
    ],
)
def test_a_static_library_that_changes_is_linked_again(folder: Path, flags: list[str]) -> None:
    (folder / "a.cpp").write_text(_HALF)
    ldflags = [flag.format(folder) for flag in flags]
    paths = set()
    for answer in (1, 2, 1):
        _archive(folder, answer)
        artefact = _build(folder, ldflags=ldflags)
        assert answer_of(artefact) == answer
        paths.add(artefact.path)
        assert _build(folder, ldflags=ldflags).path == artefact.path
    assert len(paths) == 2  # a process may have the other one open


def test_linker_flags_are_relative_to_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.cpp").write_text(_HALF)
    for name, answer in (("one", 1), ("two", 2)):
        (folder / name).mkdir()
        _archive(folder / name, answer)
    for name, answer in (("one", 1), ("two", 2), ("one", 1)):
        monkeypatch.chdir(folder / name)
        assert answer_of(_build(folder, ldflags=["-L.", "-lhalf"])) == answer


def test_a_linker_script_that_changes_is_linked_again(folder: Path) -> None:
    script = folder / "script.ld"
    flags = [f"-Wl,--defsym,chosen=0,{script}"]
    (folder / "a.cpp").write_text('extern "C" char shown; extern "C" long answer() { return (long)&shown; }\n')
    for answer in (5, 6):
        script.write_text(f"shown = {answer};\n")
        assert f"{answer:016x} A shown" in _symbols(_build(folder, ldflags=flags).path)


def _symbols(path: Path) -> str:
    return subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout


def test_a_version_script_that_changes_is_linked_again(folder: Path) -> None:
    script = folder / "exported.map"
    for name in ("answer", "other"):
        script.write_text(f"{{ global: {name}; local: *; }};\n")
        symbols = _symbols(_build(folder, ldflags=[f"-Wl,--version-script={script}"]).path)
        assert (" T answer" in symbols) == (name == "answer")


def test_a_changed_response_file_compiles_again(folder: Path) -> None:
    (folder / "a.cpp").write_text(_SOURCE.replace('#include "answer.h"', ""))
    for answer in (1, 2):
        (folder / "flags").write_text(f"-DANSWER={answer}\n")
        plan = plan_sources("mine", [folder / "a.cpp"], cflags=[f"@{folder / 'flags'}"])
        assert answer_of(build_plan(plan)) == answer


@pytest.mark.parametrize("kind", ["*.o", "*.so"])
@pytest.mark.parametrize("damage", ["zeroed", "truncated", "removed"])
def test_a_damaged_object_or_library_in_the_cache_is_built_again(folder: Path, kind: str, damage: str) -> None:
    first = _build(folder)
    (path,) = (folder / "cache").rglob(kind)
    size = path.stat().st_size
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(b"\0" * size if damage == "zeroed" else path.read_bytes()[: size // 2])
    again = _build(folder)
    assert again.path == first.path
    assert answer_of(again) == 1
    assert [source.name for source in again.compiled] == (["a.cpp"] if kind == "*.o" else [])
