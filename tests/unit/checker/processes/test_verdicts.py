"""Verdicts on cells: the reports of a process, compared with the results that it sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.cases.case import LARGE_BYTES, Case, Family
from opwright.checker.kinds import Kind
from opwright.checker.processes.channel import ForgedMessageError
from opwright.checker.processes.remote_judge import case_message, case_of
from opwright.checker.processes.verdicts import Verdicts
from opwright.checker.verdict import Cell, Failure
from tests.unit.checker.conftest import job_of

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.job import Job
    from tests.unit.conftest import Describe

DOUBLED = """
@library.op
def doubled(x: Tensor) -> Tensor:
    return 2 * x

@doubled.samples
def _(make):
    yield make.randn(3, 4)
    yield make.randn(5)

@library.op
def tripled(x: Tensor) -> Tensor:
    return 3 * x

@tripled.samples
def _(make):
    yield make.randn(3, 4)
"""


@pytest.fixture
def job(describe: Describe, tmp_path: Path) -> Job:
    return job_of(describe(DOUBLED), [("doubled", "eager")], tmp_path)


@pytest.fixture
def verdicts(job: Job) -> Verdicts:
    made = Verdicts(job)
    made.begin()
    return made


def samples(verdicts: Verdicts) -> list[Case]:
    found = [verdicts.case_named("doubled", "cpu", f"inputs of sample {number}") for number in (1, 2)]
    return [case for case in found if case is not None]


def ask(verdicts: Verdicts, what: str, case: Case, **more: Any) -> dict[str, Any]:
    message = {"ask": what, "op": "doubled", "device": "cpu", **case_message(case), **more}
    answer = verdicts.answer(message)
    assert answer is not None
    return answer


def send_right_results(verdicts: Verdicts, *cases: Case) -> None:
    for case in cases:
        answer = ask(verdicts, "fault", case, results=[2 * case.arguments["x"]])
        assert answer == {"fault": None}


def cell(runtime: str = "eager", status: Any = "passed", failures: tuple[Failure, ...] = ()) -> Cell:
    return Cell("described::doubled", runtime, "cpu", status, cases=9, failures=failures)


def test_a_passed_cell_with_correct_results_for_all_samples_passes(verdicts: Verdicts) -> None:
    send_right_results(verdicts, *samples(verdicts))
    assert verdicts.verdict(cell()) == cell()


def test_a_passed_cell_without_results_is_forged(verdicts: Verdicts) -> None:
    found = verdicts.verdict(cell())
    (failure,) = found.failures
    assert found.status == "failed"
    assert failure.kind is Kind.CHANNEL
    assert failure.kind.value == "forged-verdict"
    assert failure.got == "the process reports that eager passed, but it sent no results for the samples"


def test_a_passed_cell_that_omits_a_sample_is_forged(verdicts: Verdicts) -> None:
    send_right_results(verdicts, samples(verdicts)[0])
    assert [failure.kind for failure in verdicts.verdict(cell()).failures] == [Kind.CHANNEL]


def test_results_of_another_call_do_not_count_as_those_of_a_sample(verdicts: Verdicts) -> None:
    send_right_results(verdicts, Case("sample 3", Family.SAMPLE, {"x": torch.ones(2)}))
    assert [failure.kind for failure in verdicts.verdict(cell()).failures] == [Kind.CHANNEL]


def test_a_passed_cell_with_a_wrong_result_fails_with_the_judges_fault(verdicts: Verdicts) -> None:
    send_right_results(verdicts, *samples(verdicts))
    case = samples(verdicts)[0]
    answer = ask(verdicts, "fault", case, results=[3 * case.arguments["x"]])
    found = verdicts.verdict(cell())
    assert found.status == "failed"
    (failure,) = found.failures
    assert failure.kind is Kind.WRONG_RESULT
    assert failure == Failure.from_json(answer["fault"])
    assert "12 of 12 elements differ" in failure.got


def test_other_runtimes_require_results_of_some_call(verdicts: Verdicts) -> None:
    assert [failure.kind for failure in verdicts.verdict(cell("trace")).failures] == [Kind.CHANNEL]
    send_right_results(verdicts, samples(verdicts)[0])
    assert verdicts.verdict(cell("trace")).status == "passed"


def judged_there(name: str, fault: Failure | None = None) -> dict[str, Any]:
    found = None if fault is None else fault.to_json()
    return {"ask": "judged", "op": "doubled", "device": "cpu", "name": name, "fault": found}


def test_a_call_that_its_process_judged_because_it_is_large_counts(verdicts: Verdicts) -> None:
    verdicts.answer(judged_there("sample 1, call 0 of a batch"))
    assert verdicts.verdict(cell("vmap")).status == "passed"
    fault = Failure(Kind.WRONG_RESULT, "sample 1, call 1 of a batch")
    verdicts.answer(judged_there(fault.case, fault))
    assert verdicts.verdict(cell("vmap")).failures == (fault,)


def test_a_process_cannot_judge_the_samples_itself(verdicts: Verdicts) -> None:
    with pytest.raises(ForgedMessageError, match="the results of 'sample 1' were not sent"):
        verdicts.answer(judged_there("sample 1"))


def test_first_calls_of_the_same_name_in_other_processes_are_judged_by_their_own_arguments(verdicts: Verdicts) -> None:
    for x in (torch.ones(2), torch.zeros(2)):
        case = Case("sample 1, first caller 1", Family.SAMPLE, {"x": x})
        message = {"op": "doubled", "device": "cpu", **case_message(case)}
        assert verdicts.judge_first_call({**message, "results": [2 * x]}) is None


def test_autograd_compares_gradients_itself_but_a_wrong_result_still_fails_it(verdicts: Verdicts) -> None:
    assert verdicts.verdict(cell("autograd")).status == "passed"
    ask(verdicts, "fault", samples(verdicts)[1], results=[torch.zeros(5)])
    assert verdicts.verdict(cell("autograd")).status == "failed"


def test_a_new_cell_starts_without_the_results_of_the_previous_one(verdicts: Verdicts) -> None:
    send_right_results(verdicts, *samples(verdicts))
    verdicts.begin()
    assert verdicts.verdict(cell()).status == "failed"


@pytest.mark.parametrize("status", ["failed", "not applicable", "not run"])
def test_only_a_pass_must_be_confirmed(verdicts: Verdicts, status: str) -> None:
    given = cell(status=status, failures=(Failure(Kind.RAISES, got="an error"),))
    assert verdicts.verdict(given) == given


# -- arguments that the judge generates ----------------------------------------------------------------------


def test_the_arguments_of_samples_are_generated_here_and_not_read_from_the_message(verdicts: Verdicts) -> None:
    real = samples(verdicts)[0]
    forged = Case(real.name, real.family, {"x": torch.zeros(3, 4)}, claimed=True)
    # Zeros are correct for the arguments of the message, and wrong for those of the sample.
    answer = ask(verdicts, "fault", forged, results=[torch.zeros(3, 4)])
    assert "of 12 elements differ" in answer["fault"]["got"]


def test_the_arguments_of_other_calls_are_those_of_the_message(verdicts: Verdicts) -> None:
    case = Case("x of ones", Family.EDGE, {"x": torch.ones(2, 2)})
    send_right_results(verdicts, case)
    answer = ask(verdicts, "outline", case)
    assert (answer["refusal"], answer["own"][0].shape, answer["own"][0].device.type) == ("", (2, 2), "meta")


def filled_with(number: int) -> Case:
    return Case(f"x of {number}", Family.EDGE, {"x": torch.full((20,), float(number))})


def test_the_inputs_of_a_fault_are_kept_regardless_of_later_calls(
    verdicts: Verdicts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opwright.checker.processes.verdicts._MOST_SENT", 2)
    for number in range(2):
        ask(verdicts, "outline", filled_with(number))
    verdicts.keep("x, = torch.load('inputs of x of 0')")
    for number in range(2, 4):
        ask(verdicts, "outline", filled_with(number))
    known = [verdicts.case_named("doubled", "cpu", f"inputs of x of {number}") for number in range(4)]
    assert [case and float(case.arguments["x"][0]) for case in known] == [0.0, None, 2.0, 3.0]


def test_the_inputs_of_another_operator_are_not_those_of_a_call_of_the_same_name(verdicts: Verdicts) -> None:
    ask(verdicts, "outline", filled_with(7))
    assert verdicts.case_named("tripled", "cpu", "inputs of x of 7") is None
    assert verdicts.case_named("doubled", "cpu", "inputs of x of 7") is not None


def test_a_message_contains_only_arguments_that_are_small_enough() -> None:
    small = torch.ones(4)
    large = torch.empty(2**24 + 1)
    far = torch.empty(LARGE_BYTES // 4 + 2).as_strided((2,), (LARGE_BYTES // 4,))

    def message(*tensors: torch.Tensor) -> dict[str, Any]:
        return case_message(Case("a call", Family.SIZE, {"xs": list(tensors)}, claimed=True))

    assert message(small)["arguments"] == {"xs": [small]}
    assert "arguments" not in message(small, large)
    assert "arguments" not in message(far)
    assert message(large) == {"name": "a call", "family": "SIZE", "claimed": True}


def test_a_call_is_read_from_its_message_unless_its_arguments_are_missing() -> None:
    case = Case("a call", Family.STRIDES, {"x": torch.ones(2)}, claimed=True)
    assert case_of(case_message(case)) == case
    assert case_of({"name": "a call", "family": "STRIDES", "claimed": True}) is None


def test_a_question_without_arguments_is_rejected_unless_it_is_about_a_sample(verdicts: Verdicts) -> None:
    message = {"ask": "outline", "op": "doubled", "device": "cpu", "family": "SIZE", "claimed": False}
    with pytest.raises(ForgedMessageError, match=r"the arguments of 'sample 1, size 5 as 1' were not sent"):
        verdicts.answer({**message, "name": "sample 1, size 5 as 1"})
    answer = verdicts.answer({**message, "name": "sample 1"})
    assert answer is not None
    assert answer["refusal"] == ""
