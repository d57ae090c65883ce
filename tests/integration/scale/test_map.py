"""`opwright map` on this machine: the result of each kind of input, in a table that is always the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import opwright
from opwright.errors import MapError
from tests.integration.scale.conftest import (
    EAT_MEMORY,
    HANG,
    KILL,
    LEAVE,
    REFUSE,
    SEGFAULT,
    Inputs,
    RunMap,
    failures,
    image,
    rows,
    state,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def mean(number: float, height: int = 4) -> list[list[float]]:
    """The means that the model returns for an input with this number."""
    return (image(number, height).mean((2, 3)) + 1).tolist()  # type: ignore[no-any-return]


def test_pictures_arrays_lists_and_tables_become_rows_in_the_order_of_the_arguments(
    bundle: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "inputs"
    (folder / "deep").mkdir(parents=True)
    np.save(folder / "a.npy", image(1))
    np.savez(folder / "b.npz", image=image(2))
    Image.new("RGB", (20, 10), (255, 0, 0)).save(folder / "deep/c.png")
    Image.new("RGB", (20, 10), (255, 0, 0)).save(folder / "deep/d [é]\n.png")
    np.save(folder / "deep/_.npy", image(3))
    (folder / "list.txt").write_text("deep/_.npy\na.npy\n")
    (folder / "list.jsonl").write_text('{"inputs": {"image": "a.npy"}}\n{"inputs": {"": "b.npz"}}\n')
    kind = pa.fixed_shape_tensor(pa.float32(), (3, 4, 4))
    tensors = pa.ExtensionArray.from_storage(
        kind, pa.array([image(number).ravel() for number in (4, 5)], pa.list_(pa.float32(), 48))
    )
    pq.write_table(pa.table({"image": tensors}), folder / "tensors.parquet")
    pq.write_table(pa.table({"image": ["a.npy", "nothing.npy"]}), folder / "paths.parquet")
    content = (folder / "deep/c.png").read_bytes()
    pq.write_table(pa.table({"image": [{"bytes": content, "path": "c.png"}]}), folder / "pictures.parquet")
    summary = opwright.map(
        bundle,
        [
            folder / "list.txt",
            folder,
            folder / "list.jsonl",
            *(folder / f"{name}.parquet" for name in ("tensors", "paths", "pictures")),
            f"{folder}/?.np*",
        ],
        output=tmp_path / "out",
    )
    red = [[3.0, -1.0, -1.0]]
    a, b, three = mean(1), mean(2), mean(3)
    table = rows(tmp_path / "out")
    names = [str(Path(row["input"]).relative_to(folder)) for row in table]
    in_tables = ["paths.parquet#0", "paths.parquet#1", "pictures.parquet#0", "tensors.parquet#0", "tensors.parquet#1"]
    of_folder = ["a.npy", "b.npz", "deep/_.npy", "deep/c.png", "deep/d [é]\n.png", *in_tables]
    assert names == [
        *("deep/_.npy", "a.npy"),
        *of_folder,
        *("a.npy", "b.npz"),
        *("tensors.parquet#0", "tensors.parquet#1"),
        *("paths.parquet#0", "paths.parquet#1", "pictures.parquet#0"),
        *("a.npy", "b.npz"),
    ]
    by_name = {
        "a.npy": a,
        "b.npz": b,
        "deep/_.npy": three,
        "deep/c.png": red,
        "deep/d [é]\n.png": red,
        "paths.parquet#0": a,
        "paths.parquet#1": None,
        "pictures.parquet#0": red,
        "tensors.parquet#0": mean(4),
        "tensors.parquet#1": mean(5),
    }
    for name, row in zip(names, table, strict=True):
        expected = by_name[name]
        if expected is None:
            assert row["output_0"] is None
        else:
            assert np.allclose(np.reshape(row["output_0"], (1, 3)), expected, atol=0.01), name
    assert (summary.inputs, summary.failed, summary.resumed) == (len(table), 2, 0)
    assert set(failures(tmp_path / "out").values()) == {
        ("input_unreadable", f"the input file {folder}/nothing.npy cannot be read: No such file or directory")
    }


@pytest.mark.parametrize("batch", [1, 4])
def test_the_table_is_the_same_for_any_number_of_workers(
    bundle: Path, inputs: Inputs, tmp_path: Path, batch: int
) -> None:
    for place in range(42):
        inputs.add(float(place), height=4 + place % 10 // 9)  # some rows of a batch have another shape
    inputs.replace(20, b"damaged")
    inputs.replace(29, image(0.0)[:, :2].tobytes())
    np.save(inputs.folder / "00030.npy", image(0.0)[0, 0])
    states = []
    for workers in (1, 2, 3):
        output = tmp_path / f"{workers}"
        opwright.map(bundle, inputs.folder, output=output, workers=workers, batch=batch, shard_rows=4)
        states.append(state(output))
    assert states[0] == states[1] == states[2]
    assert sum(name.startswith("part-") for name in states[0]) == 11
    assert sorted(failures(output)) == [20, 29, 30]


def test_a_batch_returns_the_same_results_as_single_rows(bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
    for place in range(25):
        inputs.add(float(place), height=4 + place // 5 % 2)
    for batch in (1, 16):
        opwright.map(bundle, inputs.folder, output=tmp_path / f"{batch}", batch=batch)
    assert rows(tmp_path / "1") == rows(tmp_path / "16")
    ragged = [pq.read_table(tmp_path / name)["output_1"].to_pylist() for name in ("1", "16")]
    assert ragged[0] == ragged[1]
    assert [cell["shape"] for cell in ragged[0]][::5] == [[3, 4, 4], [3, 5, 4]] * 2 + [[3, 4, 4]]


def test_a_batch_larger_than_the_range_of_the_bundle_is_rejected(bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
    text = (
        "batch is 17, but the bundle runs at most 16 of these inputs together: use a smaller batch, or ship the model "
        "with a larger range"
    )
    with pytest.raises(MapError, match=f"^{re.escape(text)}$"):
        opwright.map(bundle, inputs.folder, output=tmp_path / "out", batch=17)
    assert not (tmp_path / "out").exists()


def test_exactly_the_corrupt_files_fail(bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
    inputs.add(*map(float, range(300)))
    corrupt = {17: b"", 133: b"\x93NUMPY", 266: (inputs.folder / "00266.npy").read_bytes()[:-5]}
    for place, content in corrupt.items():
        inputs.replace(place, content)
    summary = opwright.map(bundle, inputs.folder, output=tmp_path / "out", workers=2, batch=5)
    found = failures(tmp_path / "out")
    assert {place: status for place, (status, _) in found.items()} == dict.fromkeys(corrupt, "input_unreadable")
    assert all(message.count("\n") == 0 and f"{place:05d}.npy" in message for place, (_, message) in found.items())
    assert (summary.failed, summary.restarts) == (3, 0)


def test_strict_stops_at_the_first_input_that_fails(bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
    inputs.add(1.0, REFUSE, 2.0)
    output = tmp_path / "out"
    text = (
        rf"^{inputs.folder}/00001.npy: .*the input has the number 1006.* \(run_failed\)\. Without --strict it becomes a"
    )
    with pytest.raises(MapError, match=text):
        opwright.map(bundle, inputs.folder, output=output, strict=True, shard_rows=1, workers=1)
    assert [row["status"] for row in rows(output)] == ["ok"]
    opwright.map(bundle, output=output, resume=True)
    assert [row["status"] for row in rows(output)] == ["ok", "run_failed", "ok"]


@pytest.mark.parametrize("batch", [1, 4])
def test_exactly_the_inputs_that_make_the_host_exit_fail(
    bundle: Path, inputs: Inputs, tmp_path: Path, batch: int
) -> None:
    numbers = [float(place) for place in range(40)]
    numbers[3], numbers[17], numbers[18], numbers[30], numbers[39] = SEGFAULT, LEAVE, SEGFAULT, KILL, REFUSE
    inputs.add(*numbers)
    summary = opwright.map(bundle, inputs.folder, output=tmp_path / "out", workers=2, batch=batch, shard_rows=8)
    found = failures(tmp_path / "out")
    assert {status for status, _ in found.values()} == {"run_failed"}
    assert found.keys() == {3, 17, 18, 30, 39}
    segfault = "SIGSEGV, an invalid memory access, in the operator mapped::act"
    ends = {3: segfault, 17: "a call to exit, in the operator mapped::act", 18: segfault, 30: "SIGKILL"}
    for place, end in ends.items():
        assert found[place][1] == f"the host was ended by {end} each time it ran this input"
    assert summary.failed == 5
    assert summary.restarts >= 8


def test_an_input_that_hangs_is_stopped_by_the_time_limit(bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
    inputs.add(HANG)  # no others, which a busy machine might answer late
    opwright.map(bundle, inputs.folder, output=tmp_path / "out", timeout_s=1, workers=1)
    message = "the host did not answer within 1 s each time it ran this input"
    assert failures(tmp_path / "out") == {0: ("run_failed", message)}


def test_only_the_input_that_uses_all_memory_fails(bundle: Path, inputs: Inputs, tmp_path: Path) -> None:
    inputs.add(0.0, EAT_MEMORY, 1.0)
    opwright.map(bundle, inputs.folder, output=tmp_path / "out", memory=2**30, workers=1)
    assert {place: status for place, (status, _) in failures(tmp_path / "out").items()} == {1: "run_failed"}


def test_unreadable_rows_keep_their_places_next_to_a_row_that_crashes_the_host(
    bundle: Path, inputs: Inputs, tmp_path: Path
) -> None:
    inputs.add(*map(float, range(10)), SEGFAULT, 11.0)
    missing = tmp_path / "line\nbreak.npy"  # opwright reads it, and sends nothing to the host
    files = [*sorted(inputs.folder.iterdir())]
    (tmp_path / "list.jsonl").write_text(
        "".join(json.dumps({"inputs": {"image": str(path)}}) + "\n" for one in files for path in (one, missing))
    )
    opwright.map(bundle, tmp_path / "list.jsonl", output=tmp_path / "out", workers=1)
    table = rows(tmp_path / "out")
    assert [row["status"] == "input_unreadable" for row in table] == [False, True] * 12
    assert [row["id"] for row in table if row["status"] == "run_failed"] == [20]
    for place in (*range(0, 20, 2), 22):
        assert np.allclose(np.reshape(table[place]["output_0"], (1, 3)), mean(place / 2))


def test_the_command_prints_a_summary_and_writes_json(run_map: RunMap, inputs: Inputs, tmp_path: Path) -> None:
    inputs.add(1.0, REFUSE, SEGFAULT)
    output = tmp_path / "out"
    done = run_map(inputs.folder, "--json", tmp_path / "summary.json", "--workers", "1", output=output)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third, fourth = done.stdout.splitlines()
    assert first == f"{output}: 3 rows in 3 files, of which 2 failed"
    assert re.fullmatch(r"3 rows in [^,]+, [^,]+/s, by 1 worker", second)
    assert re.fullmatch(r"the model took p50 .*, p90 .*, p99 .*", third)
    assert re.fullmatch(r"hosts exited early and were restarted: 2 times", fourth)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary.pop("latency_seconds").keys() == {"p50", "p90", "p99"}
    assert summary.pop("seconds") > 0
    assert summary.pop("rows_per_second") > 0
    assert summary == {
        "output": str(output),
        "inputs": 3,
        "failed": 2,
        "resumed": 0,
        "shards": 3,
        "workers": 1,
        "restarts": 2,
    }
    done = run_map("--resume", "--json", "-", output=output)
    assert json.loads(done.stdout)["resumed"] == 3
    done = run_map("--resume", output=output)
    assert done.stdout.splitlines() == [
        f"{output}: nothing left to do",
        f"{output}: 3 rows in 3 files, of which 2 failed (3 already present)",
    ]


def test_an_empty_argument_is_rejected_with_the_exit_code_of_maps(run_map: RunMap, tmp_path: Path) -> None:
    done = run_map("", output=tmp_path / "out")
    assert done.returncode == 9
    text = "error: an input is an empty string: expected a file, a folder, or a pattern such as 'photos/*.jpg'\n"
    assert done.stderr == text
    assert list(tmp_path.iterdir()) == []


def test_an_input_can_be_read_from_a_column_with_another_name(run_map: RunMap, inputs: Inputs, tmp_path: Path) -> None:
    inputs.add(1, 2)
    paths = [str(path) for path in sorted(inputs.folder.iterdir())]
    pq.write_table(pa.table({"file": paths}), tmp_path / "t.parquet")
    table, output = tmp_path / "t.parquet", tmp_path / "out"
    assert run_map(table, "--column", "image=file", output=output).returncode == 0
    assert np.allclose([row["output_0"] for row in rows(output)], [*mean(1), *mean(2)])
    changed = run_map("--resume", output=output)
    assert "--column was {'image': 'file'}, and is now {}" in changed.stderr
    unknown = run_map(table, "--column", "picture=file", output=tmp_path / "other")
    assert "a column is given for the input picture, which is unknown: expected image" in unknown.stderr
    malformed = run_map(table, "--column", "image", output=tmp_path / "other")
    assert "'image' is not INPUT=COLUMN for another input; expected for example image=jpeg" in malformed.stderr
