"""Maps that are killed, interrupted or started twice write the same table as an undisturbed one, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import opwright
from opwright.errors import MapError
from tests.integration.scale.conftest import (
    WAIT,
    Inputs,
    RunMap,
    StartMap,
    failures,
    rows,
    state,
    wait_until,
)

WORDS = ("--workers", "2", "--shard-rows", "2")


@pytest.fixture
def waiting(inputs: Inputs, gate: Path) -> Inputs:
    """Inputs with one in the middle that waits, so that a map of them cannot finish before the gate exists."""
    inputs.add(*map(float, range(21)), WAIT, *map(float, range(22, 40)))
    return inputs


@pytest.fixture
def undisturbed(bundle: Path, waiting: Inputs, gate: Path, tmp_path: Path) -> dict[str, str]:
    """The results of an undisturbed map."""
    gate.touch()
    opwright.map(bundle, waiting.folder, output=tmp_path / "undisturbed", workers=1, shard_rows=2)
    gate.unlink()
    return state(tmp_path / "undisturbed")


def test_a_killed_host_changes_nothing(
    start_map: StartMap, waiting: Inputs, undisturbed: dict[str, str], gate: Path, tmp_path: Path
) -> None:
    program = start_map(waiting.folder, *WORDS, output=tmp_path / "out")
    program.wait_for_files(5)
    for pid in program.hosts:
        os.kill(pid, signal.SIGKILL)
    gate.touch()
    done = program.end()
    assert done.returncode == 0, done.stderr
    assert re.search(r"^hosts exited early and were restarted: \d times?$", done.stdout, re.MULTILINE)
    assert state(tmp_path / "out") == undisturbed
    assert failures(tmp_path / "out") == {}


@pytest.mark.parametrize("files", [0, 1, 8])
def test_a_killed_map_can_be_resumed(
    start_map: StartMap,
    run_map: RunMap,
    waiting: Inputs,
    undisturbed: dict[str, str],
    gate: Path,
    tmp_path: Path,
    files: int,
) -> None:
    output = tmp_path / "out"
    program = start_map(waiting.folder, *WORDS, output=output)
    wait_until((output / "_opwright/job.json").exists, "the map has started")
    program.wait_for_files(files)
    assert program.end(signal.SIGKILL).returncode == -signal.SIGKILL
    there = {name for name in state(output) if name.startswith("part-")}
    gate.touch()
    done = run_map("--resume", *WORDS, output=output)
    assert done.returncode == 0, done.stderr
    assert f"({2 * len(there)} already present)" in done.stdout or not there
    assert state(output) == undisturbed


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_map_prints_how_to_continue(
    start_map: StartMap,
    waiting: Inputs,
    undisturbed: dict[str, str],
    gate: Path,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    output = tmp_path / "out"
    program = start_map(waiting.folder, *WORDS, output=output)
    program.wait_for_files(3)
    done = program.end(number)
    assert done.returncode == 130
    assert done.stdout == ""
    assert re.fullmatch(
        rf"interrupted: {output}: \d+ of 40 done, 0 failed(, [^,]+/s, [^,]+ left)?\. Run the same command with "
        r"--resume to continue\n",
        done.stderr,
    )
    assert not (output / "_opwright/drafts").exists() or not list((output / "_opwright/drafts").iterdir())
    gate.touch()
    again = start_map(waiting.folder, *WORDS, "--resume", output=output).end()
    assert again.returncode == 0, again.stderr
    assert state(output) == undisturbed


def test_a_map_interrupted_while_it_finds_inputs_leaves_nothing(start_map: StartMap, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "list.txt")
    program = start_map(tmp_path / "list.txt", output=tmp_path / "out")
    with (tmp_path / "list.txt").open("w"):  # waits until it is read
        done = program.end(signal.SIGINT)
    assert done.returncode == 130
    assert done.stderr == f"interrupted: {tmp_path}/out: 0 inputs found. Nothing was written\n"
    assert not (tmp_path / "out").exists()


def test_a_second_map_into_one_folder_is_rejected(
    start_map: StartMap, run_map: RunMap, waiting: Inputs, undisturbed: dict[str, str], gate: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    program = start_map(waiting.folder, *WORDS, output=output)
    program.wait_for_files(1)
    for word in ([], ["--resume"]):
        done = run_map(waiting.folder, *WORDS, *word, output=output)
        assert done.returncode == 9
        assert done.stderr == (
            f"error: another map is writing to {output}: wait until it finishes, or use another folder\n"
        )
    gate.touch()
    assert program.end().returncode == 0
    assert state(output) == undisturbed


def test_a_progress_line_appears_in_a_pipe(start_map: StartMap, waiting: Inputs, gate: Path, tmp_path: Path) -> None:
    (tmp_path / "often.py").write_text("from opwright.scale import progress\nprogress._LINE_S = 0.05\n")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Often:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'opwright.scale.map':\n"
        "            sys.meta_path.remove(self)\n"
        "            import often\n"
        "sys.meta_path.insert(0, Often())\n"
    )
    program = start_map(waiting.folder, *WORDS, output=tmp_path / "out", PYTHONPATH=tmp_path)
    program.wait_for_files(3)
    errors = program.process.stderr
    assert errors
    while "done" not in (line := errors.readline()):
        assert re.fullmatch(rf"{tmp_path}/out: \d+ inputs found\n", line)
    assert re.fullmatch(rf"{tmp_path}/out: \d+ of 40 done, 0 failed(, [^,]+/s, [^,]+ left)?\n", line)
    gate.touch()
    assert program.end().returncode == 0


class TestResume:
    """The settings with which a finished map can be resumed, and those that are rejected."""

    @pytest.fixture
    def finished(self, bundle: Path, inputs: Inputs, tmp_path: Path) -> Path:
        inputs.add(*map(float, range(5)))
        opwright.map(bundle, inputs.folder, output=tmp_path / "out", batch=2, shard_rows=2)
        return tmp_path / "out"

    def refused(self, bundle: Path, output: Path, inputs: Path | None = None, **settings: int) -> str:
        with pytest.raises(MapError) as caught:
            opwright.map(bundle, inputs, output=output, resume=True, **{"batch": 2, **settings})  # type: ignore[arg-type]
        return str(caught.value)

    def test_a_finished_map_has_no_work_left(self, bundle: Path, inputs: Inputs, finished: Path) -> None:
        before = state(finished)
        summary = opwright.map(bundle, inputs.folder, output=finished, batch=2, resume=True)
        assert (summary.resumed, summary.inputs, summary.latency_seconds) == (5, 5, {})
        assert state(finished) == before

    def test_only_missing_and_damaged_files_are_written_again(self, bundle: Path, finished: Path) -> None:
        before = state(finished)
        first, second, third = sorted(finished.glob("part-*"))
        second.unlink()
        third.write_bytes(third.read_bytes()[:-9])
        untouched = first.stat().st_mtime_ns
        assert opwright.map(bundle, output=finished, batch=2, resume=True).resumed == 2
        assert state(finished) == before
        assert first.stat().st_mtime_ns == untouched

    def test_changed_settings_are_rejected(self, bundle: Path, finished: Path) -> None:
        text = (
            "{} cannot be resumed: {}, so results would differ. Resume with the original setting, or use another "
            "folder for the results"
        )
        for name, was, now in (("batch", 2, 4), ("threads", 1, 2), ("shard_rows", 2, 4)):
            change = f"--{name.replace('_', '-')} was {was}, and is now {now}"
            assert self.refused(bundle, finished, None, **{name: now}) == text.format(finished, change)

    def test_a_changed_bundle_is_rejected(self, bundle: Path, finished: Path, tmp_path: Path) -> None:
        other = Path(shutil.copytree(bundle, tmp_path / "other"))
        manifest = json.loads((other / "manifest.json").read_text())
        manifest["tolerance"] = 0.5
        (other / "manifest.json").write_text(json.dumps(manifest))
        assert re.match(
            rf"{finished} cannot be resumed: the bundle was \w{{64}}, and is now \w{{64}},",
            self.refused(other, finished),
        )

    def test_changed_inputs_are_rejected_with_the_first_difference(
        self, bundle: Path, inputs: Inputs, finished: Path
    ) -> None:
        text = (
            f"{finished} cannot be resumed with these inputs: they differ from those that the map started with, first "
            "among the inputs {}. Pass no inputs to resume with the original ones, or use another folder for the "
            "results"
        )
        inputs.add(5.0, 6.0)
        assert self.refused(bundle, finished, inputs.folder) == text.format("4 to 5")
        (inputs.folder / "00000.npy").unlink()
        assert self.refused(bundle, finished, inputs.folder) == text.format("0 to 1")

    def test_added_files_change_nothing_if_no_inputs_are_named(
        self, bundle: Path, inputs: Inputs, finished: Path
    ) -> None:
        before = state(finished)
        inputs.add(5.0)
        max(finished.glob("part-*")).unlink()
        assert opwright.map(bundle, output=finished, batch=2, resume=True).inputs == 5
        assert state(finished) == before

    def test_a_map_is_not_started_in_the_folder_of_another(self, bundle: Path, inputs: Inputs, finished: Path) -> None:
        text = f"{finished} has the results of a map: pass --resume to continue it, or use another folder"
        with pytest.raises(MapError, match=f"^{re.escape(text)}$"):
            opwright.map(bundle, inputs.folder, output=finished)

    def test_a_missing_map_is_not_resumed(self, bundle: Path, tmp_path: Path) -> None:
        text = f"{tmp_path}/nothing has no map to resume: omit --resume to start one"
        assert self.refused(bundle, tmp_path / "nothing") == text
        assert not (tmp_path / "nothing").exists()


class TestPlaces:
    """Places that results cannot go to, and inputs that do not exist."""

    def refused(self, bundle: Path, inputs: Path | list[str] | None, output: Path) -> str:
        with pytest.raises(MapError) as caught:
            opwright.map(bundle, inputs, output=output)
        return str(caught.value)

    @pytest.mark.parametrize(
        ("place", "why"),
        [
            ("file", "is a file: expected a folder"),
            ("file/out", "cannot be written: Not a directory. Use a folder that you own"),
        ],
    )
    def test_a_file_is_neither_the_folder_of_results_nor_above_it(
        self, bundle: Path, inputs: Inputs, tmp_path: Path, place: str, why: str
    ) -> None:
        inputs.add(1.0)
        (tmp_path / "file").write_text("")
        assert self.refused(bundle, inputs.folder, tmp_path / place) == f"{tmp_path}/{place} {why}"

    def test_a_folder_with_other_files_is_not_changed(self, bundle: Path, inputs: Inputs) -> None:
        inputs.add(1.0)
        before = state(inputs.folder)
        text = f"{inputs.folder} is not empty: it contains 00000.npy. Use a new folder for the results"
        assert self.refused(bundle, inputs.folder, inputs.folder) == text
        assert state(inputs.folder) == before

    @pytest.mark.needs("mount")
    def test_a_read_only_disk_is_rejected(self, bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
        inputs.add(1.0)
        (tmp_path / "disk").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", tmp_path / "disk"], check=True)
        try:
            text = f"{tmp_path}/disk/out cannot be written: Read-only file system. Use a folder that you own"
            assert self.refused(bundle, inputs.folder, tmp_path / "disk/out") == text
        finally:
            subprocess.run(["umount", tmp_path / "disk"], check=True)

    @pytest.mark.parametrize("is_there", [False, True])
    def test_an_empty_folder_has_no_inputs_and_nothing_remains(
        self, bundle: Path, inputs: Inputs, tmp_path: Path, is_there: bool
    ) -> None:
        if is_there:
            (tmp_path / "out").mkdir()
        before = state(tmp_path)
        assert self.refused(bundle, inputs.folder, tmp_path / "out").startswith(
            f"{inputs.folder} has no inputs: expected"
        )
        assert self.refused(bundle, None, tmp_path / "out") == (
            "there are no inputs: expected files, folders, patterns, lists or Parquet files"
        )
        (inputs.folder / "list.txt").write_text("")
        assert self.refused(bundle, [f"{inputs.folder}/list.txt"], tmp_path / "out").startswith("there are no inputs: ")
        (inputs.folder / "list.txt").unlink()
        assert state(tmp_path) == before


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small, separate file system."""
    (tmp_path / "disk").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", tmp_path / "disk"], check=True)
    yield tmp_path / "disk"
    subprocess.run(["umount", tmp_path / "disk"], check=True)


@pytest.mark.needs("mount")
@pytest.mark.parametrize("free", [0, 4096, 16_384, 40_000])
def test_a_full_disk_is_reported_in_one_line_and_the_map_can_be_resumed(
    bundle: Path, run_map: RunMap, inputs: Inputs, tmp_path: Path, disk: Path, free: int
) -> None:
    inputs.add(*map(float, range(24)), height=40)
    opwright.map(bundle, inputs.folder, output=tmp_path / "undisturbed", shard_rows=4)
    filler = disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - free or 1)
    output = disk / "out"
    done = run_map(inputs.folder, "--shard-rows", "4", output=output)
    assert done.returncode == 9
    assert re.fullmatch(rf"error: {output}[^\n]* cannot be written: No space left on device[^\n]*\n", done.stderr)
    has_begun = (output / "_opwright/job.json").exists()
    filler.unlink()
    done = run_map(*(["--resume"] if has_begun else [inputs.folder]), "--shard-rows", "4", output=output)
    assert done.returncode == 0, done.stderr
    assert len(rows(output)) == 24
    assert state(output) == state(tmp_path / "undisturbed")
