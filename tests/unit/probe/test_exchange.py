from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.probe.exchange import read_responses, write_requests

if TYPE_CHECKING:
    from pathlib import Path


def test_arguments_are_written_unchanged(tmp_path: Path) -> None:
    x = torch.randn(4, 3).t()[1:]
    leaf = torch.ones(2, requires_grad=True)
    write_requests([(x, 2.0, [leaf, None], (1, 2), "a", True), ()], tmp_path / "requests.pt")
    (first, second) = torch.load(tmp_path / "requests.pt", weights_only=True)
    assert torch.equal(first[0], x)
    assert (first[0].stride(), first[0].storage_offset()) == (x.stride(), x.storage_offset())
    assert first[1] == 2.0
    assert first[2][0].requires_grad
    assert first[2][1] is None
    assert first[3:] == ((1, 2), "a", True)
    assert second == ()


def test_tensors_of_a_dtype_that_archives_do_not_support_are_written_as_bits(tmp_path: Path) -> None:
    x = torch.arange(6, dtype=torch.int32).reshape(2, 3).t().to(torch.uint16)
    write_requests([([x],)], tmp_path / "requests.pt")
    ((((marker, dtype, integers),),),) = torch.load(tmp_path / "requests.pt", weights_only=True)
    assert (marker, dtype, integers.dtype) == ("opwright::bits", "uint16", torch.int16)
    assert torch.equal(integers.view(torch.uint16), x)


def test_responses_are_read_back(tmp_path: Path) -> None:
    message = torch.tensor(list(b"bad \xff"), dtype=torch.uint8)
    bits = ("opwright::bits", "float8_e5m2", torch.zeros(2, dtype=torch.uint8))
    whole = ((torch.ones(2), 3, None, bits), (None, torch.zeros(1)), torch.empty(0, dtype=torch.uint8))
    torch.save((whole, ((), (), message)), tmp_path / "responses.pt")
    good, bad = read_responses(tmp_path / "responses.pt")
    assert torch.equal(good.outputs[0], torch.ones(2))
    assert good.outputs[1:3] == (3, None)
    assert good.outputs[3].dtype == torch.float8_e5m2
    assert good.gradients[0] is None
    assert good.error == ""
    assert (bad.outputs, bad.gradients, bad.error) == ((), (), "bad \N{REPLACEMENT CHARACTER}")
