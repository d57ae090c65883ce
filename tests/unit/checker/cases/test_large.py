from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases import large
from opwright.checker.cases.case import Case, Family
from tests.unit.checker.cases.conftest import ASKED, WRITTEN
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.subject import Subject


def test_a_large_call_is_made_only_on_request(asked: Subject) -> None:
    assert asked.large() == (None, "")


def test_a_large_call_is_skipped_with_a_reason_if_memory_is_short(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "bytes_free", lambda device: 10 * 2**30)
    subject = make_subject(WRITTEN, large=True)
    case, reason = subject.large()
    assert case is None
    assert reason == ("no call with more than 2^31 bytes was tried: it needs 12.0 GiB of memory, 10.0 GiB are free")


def drawn_large(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> tuple[Case | None, str]:
    """Return the case of `large` if memory is sufficient, without allocating any: tensors have no data."""
    monkeypatch.setattr(large, "bytes_free", lambda device: 2**40)
    given = subject.samples
    subject.device = "meta"
    return large.large_case(subject.op, given, "meta", subject.options.seed)


@pytest.mark.parametrize(
    ("text", "name", "sizes", "dtype"),
    [
        # The first requested size, in the narrowest claimed dtype: (n, 2 n) elements of two bytes.
        (ASKED, "sample 1, size 1 as 23171: more than 2^31 bytes", (23171, 46342), torch.bfloat16),
        (WRITTEN, "sample 1, size 12 as 107374183: more than 2^31 bytes", (107374183, 5), torch.float32),
    ],
)
def test_a_large_call_just_exceeds_2_to_the_31_bytes(
    make_subject: MakeSubject,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    name: str,
    sizes: tuple[int, ...],
    dtype: torch.dtype,
) -> None:
    case, reason = drawn_large(make_subject(text, large=True), monkeypatch)
    assert reason == ""
    assert case is not None
    assert (case.name, case.family, case.claimed) == (name, Family.FAR, False)
    assert (tuple(case.arguments["x"].shape), case.arguments["x"].dtype) == (sizes, dtype)
    assert case.arguments["x"].nbytes > 2**31


@pytest.mark.parametrize("sample", ["make.photograph('camera').float()", "make.randn(make.size(4) % 7 + 1)"])
def test_samples_without_a_size_for_a_large_tensor_are_reported(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch, sample: str
) -> None:
    subject = make_subject(operator("x: Tensor", "x + 1", sample), large=True)
    reason = "no call with more than 2^31 bytes was tried: no size in the samples makes such a tensor"
    assert drawn_large(subject, monkeypatch) == (None, reason)
