"""Whatever stands in a manifest or in an input file, the host says what is wrong, and lives."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from tests.integration.host.conftest import Bundle, Compiled, Host

HOST = Path(__file__).parents[3] / "src/opwright/host/cpp"
MUTATIONS = 10_000
FILES = 600
SANITIZERS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")


@pytest.fixture(scope="module")
def fuzz_manifest(compiled: Compiled) -> Path:
    sources: list[str | Path] = [
        *sorted((HOST / "bundle").glob("*.cpp")),
        "engine/error.cpp",
        "tests/fuzz_manifest.cpp",
    ]
    return compiled("fuzz_manifest", sources, *SANITIZERS)


@pytest.fixture
def manifest(bundle: Bundle) -> Path:
    """One in which every kind of entry is there."""
    bundle.put("host/bin/opwright-host", b"a program")
    bundle.say(lambda manifest: manifest["torch"].update(newest="99.0"))
    bundle.say(lambda manifest: manifest["cpu"].update(features=["avx2", "fma"]))
    bundle.say(lambda manifest: manifest.update(cuda={"architectures": ["9.0"]}, host_program="host/bin/opwright-host"))
    sides = [{"input": "image", "dim": 2}, {"input": "image", "dim": 3}]
    bundle.say(lambda manifest: manifest.update(equal_dims=[sides]))
    return bundle.path / "manifest.json"


def _ran(program: Path, manifest: Path, seed: int, *words: str) -> subprocess.CompletedProcess[str]:
    # As an abort it is told apart from an ordinary end, and no machine of CI is asked for leaks under a debugger.
    environment = {**os.environ, "ASAN_OPTIONS": "abort_on_error=0:exitcode=99:detect_leaks=0"}
    command: list[str | Path] = [program, manifest, str(seed), *words]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, check=False)


def test_a_manifest_changed_in_any_way_is_read_or_refused(fuzz_manifest: Path, manifest: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    done = _ran(fuzz_manifest, manifest, seed, str(MUTATIONS))
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-4000:]}"
    outcomes = {name: int(times) for name, times in re.findall(r"^(\w+) (\d+)$", done.stdout, flags=re.MULTILINE)}
    assert sum(outcomes.values()) == MUTATIONS, f"seed {seed}"
    # Changes that go deep are among them.
    assert outcomes.keys() == {"accepted", "format_unknown", "manifest_invalid", "path_outside"}, f"seed {seed}"
    assert outcomes["accepted"] > MUTATIONS / 100, f"seed {seed}"


def test_a_read_past_the_end_would_be_found_and_its_mutation_named(fuzz_manifest: Path, manifest: Path) -> None:
    done = _ran(fuzz_manifest, manifest, 7, "200", "--plant", "137")
    assert done.returncode == 99
    assert "heap-buffer-overflow" in done.stderr
    assert "mutation 137 of the seed 7" in done.stderr


def test_a_mutation_is_shown_again(fuzz_manifest: Path, manifest: Path) -> None:
    twice = [_ran(fuzz_manifest, manifest, 7, "200", "--only", "137") for _ in range(2)]
    assert twice[0].returncode == 0
    assert twice[0].stdout == twice[1].stdout
    assert twice[0].stdout.splitlines()[-1] in {"accepted", "format_unknown", "manifest_invalid", "path_outside"}
    assert len(twice[0].stdout) > 100


def _changed(content: bytes, draw: random.Random) -> bytes:
    """Some bits flipped, some bytes put in or left out, numbers at the edges, an end that comes too soon."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(len(changed))
        # Headers are short, and most that can go wrong stands there.
        place = draw.choice((place, draw.randrange(min(len(changed), 140))))
        what = draw.randrange(6)
        if what == 0:
            changed[place] ^= 1 << draw.randrange(8)
        elif what == 1:
            changed[place:place] = draw.randbytes(draw.randrange(9))
        elif what == 2:
            del changed[place : place + draw.randrange(1, 9)]
        elif what == 3:
            edge = draw.choice((b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"99999999", b"-1"))
            changed[place : place + len(edge)] = edge
        elif what == 4:
            changed[place : place + 20] = changed[draw.randrange(len(changed)) :][:20]
        else:
            del changed[draw.randrange(len(changed)) + 1 :]
        changed = changed or bytearray(b"\0")
    return bytes(changed)


def test_input_files_changed_in_any_way_are_read_or_refused(
    host: Host, torchscript: Path, files: Path, codes: dict[str, int]
) -> None:
    with Image.open(files / "photo.jpg") as photo:
        photo.save(files / "photo.png")
    draw = random.Random(0)
    lines = []
    for number in range(FILES):
        name = ("image.npy", "both.npz", "photo.jpg", "photo.png")[number % 4]
        changed = files / f"{number}-{name}"
        changed.write_bytes(_changed((files / name).read_bytes(), draw))
        # One without a name holds the inputs by their names.
        inputs = {"": changed.name} if name == "both.npz" else {"image": changed.name, "shift": "shift.npy"}
        lines.append(json.dumps({"inputs": inputs}))
    (files / "list").write_text("\n".join(lines))
    done = host(torchscript, "--requests", files / "list", "--json", "-", "--warm-up", "0")
    *answers, _ = map(json.loads, done.stdout.splitlines())
    assert [answer["request"] for answer in answers] == [
        f"line {number} of {files / 'list'}" for number in range(1, FILES + 1)
    ]
    kinds = [answer["error"]["kind"] if "error" in answer else "" for answer in answers]
    assert set(kinds) <= {"", "input_unreadable", "input_unknown", "input_dtype", "input_rank", "input_size"}
    for place in range(4):
        of_one_form = kinds[place::4]
        assert {"", "input_unreadable"} <= set(of_one_form)
    assert done.returncode == codes[next(kind for kind in kinds if kind)]
