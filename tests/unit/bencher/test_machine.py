from __future__ import annotations

import dataclasses
import datetime as dt
import json
import platform

import pytest
import torch

from opwright.bencher.machine import machine_record


def test_the_record_says_what_computes_and_not_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    record = machine_record()
    assert record.pytorch == torch.__version__
    assert record.kernels == torch.backends.cpu.get_cpu_capability()
    assert record.environment["OMP_NUM_THREADS"] == "3"
    assert (record.cuda == "") is (torch.version.cuda is None)
    assert len(record.gpus) == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
    assert abs((dt.date.fromisoformat(record.date) - dt.datetime.now(dt.timezone.utc).date()).days) <= 1
    told = json.dumps(dataclasses.asdict(record))
    assert platform.node() not in told.split('"')


def test_the_facts_are_words_for_all_of_it() -> None:
    record = machine_record()
    facts = record.facts()
    assert facts["PyTorch"].startswith(torch.__version__)
    assert facts["machine"] == str(record.machine)
    assert facts["date"] == record.date
    assert any(name in facts["computes with"] for name in ("MKL", "OpenMP", "oneDNN"))


@pytest.mark.needs("cuda")
def test_a_gpu_is_named_with_its_driver() -> None:
    record = machine_record()
    assert record.gpus[0].name == torch.cuda.get_device_name(0)
    assert record.gpus[0].multiprocessors > 0
    assert record.driver.count(".") >= 1
