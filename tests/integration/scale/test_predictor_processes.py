"""Each process has one host for its predictors, whatever crashes, forks and pickles do."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import opwright
from opwright import MapError
from tests.integration.scale.conftest import children, wait_until

IMAGES = np.random.default_rng(1).random((6, 3, 8, 8), dtype=np.float32)


def wait_for_exit(pid: int) -> None:
    """Wait until a process has exited, and its parent knows."""
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"the process {pid} has exited")


def test_predictors_with_the_same_arguments_use_one_host(fragile: Path) -> None:
    before = children(os.getpid())
    first, second = (opwright.Predictor(fragile, memory=2**33) for _ in range(2))
    third = pickle.loads(pickle.dumps(first))
    for predictor in (first, second, third):
        predictor.rows(IMAGES)
        predictor.rows(IMAGES)
    assert first.pid is not None
    assert first.pid == second.pid == third.pid
    assert set(children(os.getpid())) - set(before) == {first.pid}
    third.close()


def test_other_arguments_use_another_host(fragile: Path) -> None:
    with opwright.Predictor(fragile) as one, opwright.Predictor(fragile, threads=2) as two:
        one.start()
        two.start()
        assert one.pid != two.pid


def test_a_host_exits_with_the_last_predictor_created_here(fragile: Path) -> None:
    first, second = (opwright.Predictor(fragile, memory=2**33 + 1) for _ in range(2))
    first.start()
    second.start()
    pid = first.pid
    assert pid is not None
    del first
    gc.collect()
    assert second.pid == pid
    assert len(second.rows(IMAGES)) == 6
    del second
    gc.collect()
    wait_for_exit(pid)


def test_the_host_of_an_unpickled_predictor_waits_for_the_next_one(fragile: Path) -> None:
    text = pickle.dumps(opwright.Predictor(fragile, memory=2**33 + 2))
    pids = set()
    for _ in range(3):
        predictor = pickle.loads(text)
        predictor.rows(IMAGES)
        pids.add(predictor.pid)
        del predictor
        gc.collect()
    assert len(pids) == 1
    assert pids <= set(children(os.getpid()))
    last = pickle.loads(text)
    last.start()
    last.close()
    assert last.pid is None
    assert not pids & set(children(os.getpid()))


def test_a_pickle_contains_arguments_and_no_process(fragile: Path) -> None:
    predictor = opwright.Predictor(fragile, batch=3, on_error="keep")
    before = pickle.dumps(predictor)
    predictor.start()
    assert pickle.dumps(predictor) == before
    assert len(before) < 2000
    restored = pickle.loads(before)
    assert repr(restored) == f"opwright.Predictor({str(fragile)!r})"
    assert restored.rows([None])[0]["status"] == "input_unreadable"
    restored.close()


def test_a_bundle_that_changed_after_pickling_is_rejected(fragile: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(fragile, tmp_path / "bundle"))
    predictor = opwright.Predictor(bundle)
    manifest = bundle / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    with pytest.raises(MapError, match="has changed since the predictor was created: create a new one"):
        predictor.rows(IMAGES)
    shutil.rmtree(bundle)
    with pytest.raises(MapError, match=r"cannot be read here .*: expected the bundle at the same path on each machine"):
        predictor.rows(IMAGES)


FORKS = """
import os, sys, threading, time
import numpy as np
import opwright
images = np.ones((2, 3, 8, 8), np.float32)
predictor = opwright.Predictor(sys.argv[1])
predictor.rows(images)
mine = predictor.pid
if sys.argv[2:]:
    # The operator waits at 14, so the fork happens while a thread uses the host.
    waits = images.copy()
    waits[:, 0, 0, :] = 14
    asked = threading.Thread(target=predictor.rows, args=([*waits] * 2,))
    asked.start()
    time.sleep(0.1)
child = os.fork()
if child == 0:
    assert predictor.pid is None
    found = predictor.rows(images)
    assert predictor.pid not in {None, mine}
    assert found[0]["output"].tolist() == [2, 2, 2]
    sys.exit(0)  # not os._exit: exit handlers must not stop the parent's host
assert os.waitpid(child, 0)[1] == 0
predictor.rows(images)
assert predictor.pid == mine
print(mine)
"""


@pytest.mark.parametrize("more", [(), ("busy",)], ids=["idle", "busy"])
def test_a_forked_process_starts_its_own_host_and_each_host_exits_with_its_process(
    fragile: Path, more: tuple[str, ...]
) -> None:
    flags = ("-W", "ignore", "-W", "default::ResourceWarning")
    command: list[str | Path] = [sys.executable, *flags, "-c", FORKS, fragile, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    wait_for_exit(int(done.stdout))


LEAVES_A_FORK = """
import os, sys, threading, time
import opwright
predictor = opwright.Predictor(sys.argv[1])
predictor.start()
if os.fork() == 0:
    predictor.start()
    print(os.getpid(), predictor.pid, flush=True)
    time.sleep(600)
print(predictor.pid, flush=True)
sys.stdin.read()
os._exit(0)  # no exit handler stops the host
"""


def test_a_host_exits_with_its_process_even_if_a_fork_is_running(fragile: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LEAVES_A_FORK, fragile], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    lines = sorted((process.stdout.readline().split() for _ in range(2)), key=len)
    (mine,), (fork, its_host) = [[int(word) for word in line] for line in lines]
    process.stdin.close()
    process.wait()
    wait_for_exit(mine)
    assert Path(f"/proc/{its_host}").exists()
    os.kill(fork, signal.SIGKILL)
    wait_for_exit(its_host)
    process.stdout.close()


def test_two_concurrent_threads_receive_their_own_answers(fragile: Path) -> None:
    found: dict[int, list[list[float]]] = {}
    with opwright.Predictor(fragile, batch=2) as predictor:

        def ask(number: int) -> None:
            image = np.full((3, 8, 8), number, np.float32)
            found[number] = [row["output"].tolist() for _ in range(20) for row in predictor.rows([image] * 3)]

        threads = [threading.Thread(target=ask, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {number: [[2.0 * number] * 3] * 60 for number in (1, 2)}


def test_an_operator_that_crashes_fails_only_its_row(fragile: Path) -> None:
    images = IMAGES.copy()
    images[2, 0, 0, 0] = 13
    with opwright.Predictor(fragile, batch=4, on_error="keep") as predictor:
        predictor.start()
        first = predictor.pid
        found = predictor({"image": images})
        assert found["status"].tolist() == ["ok", "ok", "run_failed", "ok", "ok", "ok"]
        assert "was ended by SIGSEGV" in found["error"][2]
        assert np.array_equal(np.isnan(found["output"]).any(1), np.arange(6) == 2)
        assert predictor.pid != first
    with (
        opwright.Predictor(fragile, batch=4) as strict,
        pytest.raises(MapError, match=r"row 2: the host was ended by SIGSEGV.*\(run_failed\)"),
    ):
        strict.rows(images)


def test_a_host_killed_between_two_calls_is_started_again(fragile: Path) -> None:
    with opwright.Predictor(fragile) as predictor:
        predictor.start()
        first = predictor.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert len(predictor.rows(IMAGES)) == 6
        assert predictor.pid != first


def test_an_exception_while_rows_are_generated_leaves_no_answers_behind(fragile: Path) -> None:
    class RowsError(Exception):
        pass

    def rows() -> object:
        yield IMAGES[0]
        raise RowsError

    with opwright.Predictor(fragile) as predictor:
        with pytest.raises(RowsError):
            predictor.rows(rows())  # type: ignore[arg-type]  # an iterator
        ones = np.ones((3, 8, 8), np.float32)
        assert predictor.rows([ones])[0]["output"].tolist() == [2, 2, 2]
