"""Repros of faults: the files that they load, and what they show when they run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from opwright.checker.cases.case import Case, Family, Layout
from opwright.checker.cases.code import call_code
from opwright.checker.kinds import Kind
from opwright.checker.processes.reproduction import complete, saved
from opwright.checker.processes.verdicts import Verdicts
from opwright.checker.verdict import Cell, Failure
from opwright.spec import library_at
from tests.interpreter import server
from tests.unit.checker.conftest import job_of

if TYPE_CHECKING:
    from opwright.checker.job import Job
    from opwright.spec import Library
    from tests.unit.conftest import Describe

MARK = "# These lines alone did not reproduce the fault.\n"
# The number of files to keep.
MOST_FILES = 500


def loaded(path: Path) -> list[Any]:
    found: list[Any] = torch.load(path)
    return found


def is_same(one: Tensor, other: Tensor) -> bool:
    return Layout.of(one) == Layout.of(other) and bytes(one.untyped_storage()) == bytes(other.untyped_storage())


def case(**arguments: Any) -> Case:
    return Case("a call", Family.EDGE, arguments)


def number_of(count: int) -> Case:
    return case(x=torch.full((7,), float(count)))


@settings(deadline=None, max_examples=50)
@given(
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.complex64, torch.int16, torch.uint8]),
    numbers=st.binary(min_size=136, max_size=136),  # 17 elements of 8 bytes: the last index with the largest strides
    strides=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    offset=st.integers(0, 4),
)
def test_a_repro_loads_the_exact_bits_and_layout_of_a_tensor(
    tmp_path_factory: pytest.TempPathFactory, dtype: torch.dtype, numbers: bytes, strides: tuple[int, int], offset: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "very bits"
    memory = torch.frombuffer(bytearray(numbers), dtype=torch.uint8).view(dtype)
    tensor = memory.as_strided((2, 4), strides, offset)
    assert is_same(loaded(saved(case(x=tensor), folder))[0], tensor)


def test_conjugate_views_shared_memory_and_lists_are_loaded_unchanged(tmp_path: Path) -> None:
    x = torch.randn(9, dtype=torch.complex64)
    conjugate, (first, second) = loaded(saved(case(x=x.conj(), ys=[x, x[1:]]), tmp_path))
    assert conjugate.is_conj()
    assert is_same(conjugate, x.conj())
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def test_memory_that_is_viewed_in_two_dtypes_is_saved_twice(tmp_path: Path) -> None:
    x = torch.randn(9, dtype=torch.complex64)
    whole, part = loaded(saved(case(x=x, y=x.conj().imag), tmp_path))
    assert is_same(whole, x)
    assert part.is_neg()
    assert torch.equal(part, -x.imag)


def test_the_file_contains_only_tensors_that_the_repro_loads_without_their_gradients(tmp_path: Path) -> None:
    long = torch.randn(7, requires_grad=True)
    (found,) = loaded(saved(case(n=3, short=torch.ones(2), long=long, none=None), tmp_path))
    assert torch.equal(found, long)
    assert not found.requires_grad


def test_a_file_is_named_after_its_content(tmp_path: Path) -> None:
    first = saved(number_of(1), tmp_path)
    assert saved(number_of(1), tmp_path) == first
    assert saved(number_of(2), tmp_path) != first
    assert len(list(tmp_path.iterdir())) == 2


def test_the_newest_files_are_kept(tmp_path: Path) -> None:
    for age in range(MOST_FILES + 20):
        path = tmp_path / f"{age}.pt"
        path.touch()
        os.utime(path, (10**9 - age, 10**9 - age))
    new = saved(number_of(1), tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {new.name, *(f"{age}.pt" for age in range(MOST_FILES - 1))}


def test_partial_files_are_neither_left_behind_nor_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    saved(number_of(1), tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            saved(number_of(2), tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".pt"]
    assert torch.equal(loaded(next(tmp_path.iterdir()))[0], torch.ones(7))


# -- running a repro ------------------------------------------------------------------------------------------

TRIPLED = """
@library.op
def tripled(x: Tensor) -> Tensor:
    if x.dim() > 2:
        raise ValueError("x must have at most two dimensions")
    return (2 if os.environ.get("JUDGES") else 3) * x

@tripled.samples
def _(make):
    yield make.randn(3, 4)
    yield make.randn(2, 2)
"""


@pytest.fixture(scope="module")
def library(describe: Describe) -> Library:
    return describe(TRIPLED)


@pytest.fixture
def job(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    # The judge expects 2 x; the process that runs the repro returns 3 x, as a wrong operator does.
    monkeypatch.setenv("JUDGES", "1")
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path / "cache"))
    return job_of(library, [("tripled", "eager")], tmp_path, python=list(server()), environment={"JUDGES": ""})


def completed(job: Job, found: Failure, runtime: str = "eager") -> str:
    cell = Cell(f"{job.namespace}::tripled", runtime, "cpu", "failed", failures=(found,))
    (failure,) = complete(cell, job, Verdicts(job)).failures
    assert replace(failure, repro="") == replace(found, repro="")
    return failure.repro


def sample(job: Job, number: int) -> Case:
    found = Verdicts(job).case_named("tripled", "cpu", f"inputs of sample {number}")
    assert found is not None
    return found


def lines(job: Job, given: Case) -> str:
    return call_code(library_at(job.path).ops["tripled"], given)


def test_a_repro_that_shows_the_fault_loads_the_tensors_of_the_call(job: Job) -> None:
    given = sample(job, 1)
    repro = completed(job, Failure(Kind.WRONG_RESULT, given.name, lines(job, given)))
    assert not repro.startswith("#")
    assert "inputs of" not in repro
    path = repro.partition("torch.load('")[2].partition("'")[0]
    assert is_same(loaded(path)[0], given.arguments["x"])  # type: ignore[arg-type]


def test_a_repro_that_may_hang_loads_its_tensors_and_is_not_run(job: Job) -> None:
    given = sample(job, 1)
    here = Path(job.work) / "was_run"
    for kind in (Kind.HANG, Kind.FORKED):
        code = f"{lines(job, given)}\nopen({str(here)!r}, 'w')"
        repro = completed(job, Failure(kind, given.name, code))
        assert "inputs of" not in repro
        assert not here.exists()


def test_a_repro_that_does_not_show_the_fault_is_marked(job: Job) -> None:
    right = replace(job, environment={"JUDGES": "1"})
    given = sample(job, 1)
    repro = completed(right, Failure(Kind.WRONG_RESULT, given.name, lines(job, given)))
    assert repro.startswith(f"{MARK}import opwright, torch\n")


def test_a_repro_is_marked_if_the_numbers_of_its_call_are_unknown(job: Job) -> None:
    code = lines(job, Case("another call", Family.EDGE, {"x": torch.ones(30)}))
    repro = completed(job, Failure(Kind.WRONG_RESULT, "another call", code))
    assert repro.startswith(MARK)
    assert "x, = torch.load('inputs of another call')  # not saved: its tensors are unknown\n" in repro


def test_a_repro_that_raises_does_not_show_an_accepted_bad_input(job: Job) -> None:
    refused = Case("rank 3", Family.BAD_RANK, {"x": torch.ones(1, 1, 1)})
    accepted = Case("rank 1", Family.BAD_RANK, {"x": torch.ones(1)})
    assert completed(job, Failure(Kind.BAD_INPUT, refused.name, lines(job, refused))).startswith(MARK)
    assert not completed(job, Failure(Kind.BAD_INPUT, accepted.name, lines(job, accepted))).startswith(MARK)


@pytest.mark.parametrize(
    ("code", "shows"),
    [
        ("import os\nos.abort()", True),
        ("import os\nos._exit(3)", True),
        ("raise ValueError('the fault')", True),
        ("1 + 1", True),
        ("x = no_such_name", False),
        ("x = (", False),
        ("import no_such_module", False),
        ("# a comment\nopen('no such file')", False),
    ],
)
def test_a_repro_that_cannot_run_is_marked_and_a_crash_or_an_error_shows_the_fault(
    job: Job, code: str, *, shows: bool
) -> None:
    assert completed(job, Failure(Kind.RUNTIME, "a step", code)) == (code if shows else MARK + code)


def test_files_that_a_repro_writes_are_not_left_in_the_users_folder(
    job: Job, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    monkeypatch.setenv("OPWRIGHT_CACHE", "relative")
    code = "import os, torch\ntorch.save(os.environ['OPWRIGHT_CACHE'], 'model.pt')"
    assert completed(job, Failure(Kind.RUNTIME, "a step", code)) == code
    assert list(here.iterdir()) == []
    assert torch.load(Path(job.work) / "model.pt") == str(here / "relative")


def test_a_fault_without_a_repro_is_unchanged(job: Job) -> None:
    assert completed(job, Failure(Kind.CHANNEL, got="forged")) == ""
