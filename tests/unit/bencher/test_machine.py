from __future__ import annotations

import dataclasses
import datetime as dt
import json
import platform

import pytest
import torch

from opwright.bencher.machine import machine_record


def test_the_record_describes_the_machine_and_not_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    record = machine_record()
    assert record.pytorch == torch.__version__
    assert record.kernels == torch.backends.cpu.get_cpu_capability()
    assert record.environment["OMP_NUM_THREADS"] == "3"
    assert (record.cuda == "") is (torch.version.cuda is None)
    assert len(record.gpus) == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
    assert abs((dt.date.fromisoformat(record.date) - dt.datetime.now(dt.timezone.utc).date()).days) <= 1
    text = json.dumps(dataclasses.asdict(record))
    assert platform.node() not in text.split('"')


def test_the_facts_describe_the_whole_record() -> None:
    record = machine_record()
    facts = record.facts()
    assert facts["PyTorch"].startswith(torch.__version__)
    assert facts["machine"] == str(record.machine)
    assert facts["date"] == record.date
    assert any(name in facts["math libraries"] for name in ("MKL", "OpenMP", "oneDNN"))


@pytest.mark.needs("cuda")
def test_a_gpu_is_named_with_its_driver() -> None:
    record = machine_record()
    assert record.gpus[0].name == torch.cuda.get_device_name(0)
    assert record.gpus[0].multiprocessors > 0
    assert record.driver.count(".") >= 1
