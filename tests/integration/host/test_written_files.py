"""Outputs and temporary folders are complete or absent, private, and cleaned up after a killed process."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.integration.host.conftest import IMAGE, SHIFT

if TYPE_CHECKING:
    from tests.integration.host.conftest import Bundle, Compiled, Host, Refused

HOST = Path(__file__).parents[3] / "src/opwright/host/cpp"
WRITERS, ROUNDS = 8, 100
# The name of a leftover file or folder has this length.
LEFT = "a" * 12
WRITER = """
#include <iostream>
#include "engine/atomic_file.h"

// Writes a file repeatedly, in pieces, filled with one letter.
int main(int, char** argv) {
    const std::string piece(4096, argv[2][0]);
    for (int i = 0; i < std::stoi(argv[3]); ++i) {
        opwright::host::AtomicFile file(argv[1]);
        for (int part = 0; part < 16; ++part) opwright::host::write_all(file.descriptor(), piece);
        file.commit();
    }
}
"""


@pytest.fixture(scope="module")
def writer(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("writer") / "writer.cpp"
    source.write_text(WRITER)
    return compiled("writer", [HOST / "engine/atomic_file.cpp", HOST / "engine/leftovers.cpp", source])


def test_eight_writers_of_one_file_keep_it_complete_at_every_moment(writer: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    started = [subprocess.Popen([writer, out, letter, str(ROUNDS)]) for letter in "abcdefgh"[:WRITERS]]
    are_running = True
    while are_running:
        are_running = any(one.poll() is None for one in started)  # checked again after the last one
        if out.exists():
            content = out.read_bytes()
            assert content == content[:1] * 65536
    assert [one.returncode for one in started] == [0] * WRITERS
    assert list(tmp_path.iterdir()) == [out]


def test_eight_hosts_that_write_one_output_leave_it_complete(
    program: Path, torchscript: Path, fitting: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out.npz"
    started = [
        subprocess.Popen([program, torchscript, *fitting, "-o", out], stdout=subprocess.DEVNULL) for _ in range(WRITERS)
    ]
    assert [one.wait() for one in started] == [0] * WRITERS
    with np.load(out) as outputs:
        assert set(outputs) == {"output_0", "output_1"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_other_files_next_to_the_output_are_kept_and_links_are_not_followed(
    host: Host, torchscript: Path, fitting: list[str], tmp_path: Path
) -> None:
    own, target = tmp_path / "out.npz.part", tmp_path / "target"
    own.write_text("the user's")
    target.write_text("the target's")
    (tmp_path / "out.npz").symlink_to(target)
    assert host(torchscript, *fitting, "--output", tmp_path / "out.npz").returncode == 0
    assert own.read_text() == "the user's"
    assert target.read_text() == "the target's"
    assert not (tmp_path / "out.npz").is_symlink()
    assert (tmp_path / "out.npz").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_writer_removes_leftovers_of_killed_writers_but_not_files_of_running_ones(
    host: Host, torchscript: Path, fitting: list[str], tmp_path: Path
) -> None:
    left, living = tmp_path / f".opwright-{LEFT}.part", tmp_path / f".opwright-{LEFT[:-1]}b.part"
    users = [tmp_path / ".opwright-short.part", tmp_path / f".opwright-{LEFT}.party"]
    for path in (left, living, *users):
        path.touch()
    with living.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert host(torchscript, *fitting, "--output", tmp_path / "out.npz").returncode == 0
    assert not left.exists()
    assert all(path.exists() for path in (living, *users))


def test_a_killed_writer_keeps_the_old_file_and_the_next_one_removes_its_new_file(writer: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    subprocess.run([writer, out, "a", "1"], check=True)
    for _ in range(5):
        with subprocess.Popen([writer, out, "b", "1000000"]) as started:
            while out.read_bytes()[:1] != b"b":
                pass
            started.send_signal(signal.SIGKILL)
        content = out.read_bytes()
        assert content == content[:1] * 65536
        subprocess.run([writer, out, "a", "1"], check=True)
        assert list(tmp_path.iterdir()) == [out]


def test_hosts_killed_at_any_moment_leave_complete_outputs_and_the_next_one_cleans_up(
    program: Path, torchscript: Path, files: Path, tmp_path: Path
) -> None:
    """Some of 20 are killed while loading, some while writing one of many outputs, and some at exit."""
    moments = random.Random(14)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    inputs = {"image": str(files / "image.npy"), "shift": str(files / "shift.npy")}
    requests = [{"inputs": inputs, "output": str(outputs / f"{number}.npz")} for number in range(200)]
    (tmp_path / "list.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in requests))
    command: list[str | Path] = [program, torchscript, "--requests", tmp_path / "list.jsonl", "--warm-up", "0"]
    for _ in range(20):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
            time.sleep(moments.uniform(0, 0.6))
            started.kill()
        for path in outputs.glob("[!.]*"):
            with np.load(path) as found:
                assert found["output_0"].size > 0
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert sorted(path.name for path in outputs.iterdir()) == sorted(f"{number}.npz" for number in range(200))


def test_loading_a_package_removes_the_folder_of_a_killed_process(
    program: Path, aoti: Path, fitting: list[str], tmp_path: Path
) -> None:
    left, living = tmp_path / f"opwright-package-{LEFT}", tmp_path / f"opwright-package-{LEFT[:-1]}b"
    users = tmp_path / "opwright-mine"
    for folder in (left, living, users):
        (folder / "data").mkdir(parents=True)
    held = os.open(living, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    subprocess.run(
        [program, aoti, *fitting], env={**os.environ, "TMPDIR": str(tmp_path)}, check=True, stdout=subprocess.DEVNULL
    )
    os.close(held)
    assert sorted(tmp_path.glob("opwright-*")) == sorted([living, users])


def test_a_package_leaves_no_folder_if_it_is_killed_in_a_run_or_does_not_load(
    program: Path, package: Bundle, tmp_path: Path, codes: dict[str, int]
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    os.mkfifo(tmp_path / "list")
    command: list[str | Path] = [program, package.path, "--requests", tmp_path / "list"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as started:
        with (tmp_path / "list").open("w"):  # the model is loaded when the list is opened
            pass
        started.send_signal(signal.SIGKILL)
    assert list(temporary.iterdir()) == []
    with zipfile.ZipFile(package.path / "model.pt2") as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    for ending in (".so", ".json"):
        with zipfile.ZipFile(tmp_path / "broken.pt2", "w") as archive:
            for name, content in records.items():
                archive.writestr(name, b"x" if name.endswith(ending) else content)
        package.put("model.pt2", (tmp_path / "broken.pt2").read_bytes())
        done = subprocess.run([program, package.path, "--verify"], env=environment, check=False, capture_output=True)
        assert done.returncode == codes["model_invalid"]
        assert list(temporary.iterdir()) == []


def test_non_ascii_array_names_are_written_as_numpy_writes_them(host: Host, bundle: Bundle, tmp_path: Path) -> None:
    bundle.say(lambda manifest: manifest["outputs"][0].update(name="größe/ü"))
    bundle.say(lambda manifest: manifest["inputs"][0].update(name="bild_é"))
    np.savez(tmp_path / "named.npz", bild_é=IMAGE, shift=SHIFT)
    done = host(bundle.path, "--input", tmp_path / "named.npz", "--output", tmp_path / "out.npz")
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(tmp_path / "out.npz") as outputs:
        assert set(outputs) == {"größe/ü", "output_1"}
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert [entry.flag_bits >> 11 & 1 for entry in archive.infolist()] == [1, 0]


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/../../x", "..", "a\\..\\x", "C:x"])
def test_a_name_that_is_a_path_outside_the_archive_is_not_written(
    refused: Refused, bundle: Bundle, fitting: list[str], tmp_path: Path, name: str
) -> None:
    bundle.say(lambda manifest: manifest["outputs"][0].update(name=name))
    refusal = refused(bundle, *fitting, "--output", tmp_path / "out.npz")
    assert refusal.code == "output_unwritable"
    assert refusal.message == (
        f"the output {tmp_path}/out.npz cannot be written: the array name '{name}' is a path outside the archive; "
        "rename that output of the model"
    )
    assert list(tmp_path.glob("*out*")) == []


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_an_output_that_is_not_a_file_is_refused_and_kept(
    refused: Refused, torchscript: Path, fitting: list[str], tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out.npz"
    os.mkfifo(out) if kind == "pipe" else out.symlink_to("/dev/null")
    refusal = refused(torchscript, *fitting, "--output", out)
    assert refusal.code == "output_unwritable"
    assert refusal.message == f"the output {out} cannot be written: it is a device, a pipe or a socket, not a file"
    assert out.is_fifo() or out.is_symlink()


def test_a_full_disk_is_reported_and_leaves_no_files(
    program: Path, torchscript: Path, fitting: list[str], tmp_path: Path, codes: dict[str, int]
) -> None:
    script = 'ulimit -f 0; "$@"'
    command: list[str | Path] = ["sh", "-c", script, "sh", program, torchscript, *fitting, "-o", tmp_path / "out.npz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == codes["output_unwritable"]
    assert done.stderr == f"host: the output {tmp_path}/out.npz cannot be written: File too large\n"
    assert list(tmp_path.glob("*out*")) + list(tmp_path.glob(".*")) == []
