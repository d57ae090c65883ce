from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from opwright.bundle.compare.golden import write_golden
from opwright.bundle.compare.goldens import run_goldens
from opwright.bundle.format.manifest import Output
from opwright.bundle.source.samples import Inputs
from opwright.bundle.source.shape import parse_shape
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONES = torch.ones


def inputs(*samples: Tensor, shape: str) -> Inputs:
    return Inputs(("x",), (parse_shape(shape),), (None,), tuple((sample,) for sample in samples))


def test_outputs_are_those_of_the_model_and_sizes_that_follow_the_inputs_are_open() -> None:
    goldens = run_goldens(lambda x: {"twice": x * 2, "mean": x.mean(0)}, inputs(ONES(2, 3), ONES(4, 3), shape="2..4,3"))
    assert [golden.outputs[0].tolist() for golden in goldens.kept] == [[[2.0] * 3] * 2, [[2.0] * 3] * 4]
    assert goldens.outputs == (Output("twice", "float32", (None, 3)), Output("mean", "float32", (3,)))


def test_a_claimed_size_without_a_sample_is_probed() -> None:
    goldens = run_goldens(lambda x: x.flatten(), inputs(torch.arange(8.0).reshape(4, 2), shape="1..8,2"))
    assert len(goldens.kept) == 1
    assert [tuple(probe.inputs[0].shape) for probe in goldens.probes] == [(1, 2)]
    assert goldens.probes[0].outputs[0].tolist() == [0, 1]
    assert goldens.outputs[0].dims == (None,)
    assert goldens.all == goldens.kept + goldens.probes


def test_a_model_without_dynamic_sizes_has_no_probes() -> None:
    goldens = run_goldens(lambda x: x, inputs(ONES(4), shape="4"))
    assert goldens.probes == ()
    assert goldens.outputs[0].dims == (4,)


def test_a_size_that_depends_on_values_is_open_even_if_one_sample_does_not_show_it() -> None:
    goldens = run_goldens(lambda x: (x[x > 1], x), inputs(torch.arange(4.0), shape="4"))
    assert [output.dims for output in goldens.outputs] == [(None,), (4,)]
    assert len(goldens.all) == 1


def test_a_model_that_rejects_constant_inputs_keeps_the_sizes_of_its_samples() -> None:
    def demanding(x: Tensor) -> Tensor:
        if x.min() == x.max():
            raise ValueError
        return x

    assert run_goldens(demanding, inputs(torch.arange(4.0), shape="4")).outputs[0].dims == (4,)


def test_a_model_that_writes_to_its_inputs_does_not_change_the_goldens() -> None:
    (golden,) = run_goldens(lambda x: x.add_(1), inputs(ONES(1), shape="1")).kept
    assert golden.inputs[0].tolist() == [1]
    assert golden.outputs[0].tolist() == [2]


def fails(x: Tensor) -> Tensor:
    return x.reshape(2, 2)


def counted(x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
    return x if len(x) == 1 else (x, x)


def other_dtype(x: Tensor) -> Tensor:
    return x if len(x) == 1 else x.long()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (fails, "the model fails with sample 0 (float32[1]): RuntimeError: shape '[2, 2]' is invalid"),
        (
            lambda _: torch.ops.nowhere.f,
            "the operator nowhere::f is not defined: name the library that defines it",
        ),
        (torch.rand_like, "the model returns different results when it runs again with the same inputs"),
        (counted, "sample 1 returns the outputs output_0, output_1, but the first one returns output"),
        (other_dtype, "the output 'output' has a different dtype or number of dimensions at different sizes"),
        (lambda _: 3, "the model returns a int"),
        (lambda x: {"a.b": x, "a": {"b": x}}, "several outputs of the model are named 'a.b': use distinct keys in the"),
        (lambda x: {"a\n": x}, "the name of an output is 'a\\n': expected 1 to 255 bytes"),
    ],
)
def test_a_model_that_cannot_be_compared_is_rejected(model: Callable[[Tensor], object], message: str) -> None:
    with pytest.raises(BundleError) as refused:
        run_goldens(model, inputs(ONES(1), ONES(3), shape="1..3"))
    assert message in str(refused.value)


def test_a_claimed_size_that_fails_is_reported() -> None:
    with pytest.raises(BundleError, match=r"with the first sample at other claimed sizes \(float32\[1\]\)"):
        run_goldens(fails, inputs(ONES(4), shape="1..8"))


def test_a_golden_file_contains_only_its_tensors_and_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    large = torch.arange(100_000.0)
    (golden,) = run_goldens(lambda x: (x.T, x[0]), inputs(large[:6].reshape(2, 3), shape="2,3")).kept
    for name in ("a.pt", "b.pt"):
        (tmp_path / name).mkdir()
        write_golden(golden, tmp_path / name / "0.pt")
    content = (tmp_path / "a.pt/0.pt").read_bytes()
    assert content == (tmp_path / "b.pt/0.pt").read_bytes()
    assert len(content) < 10_000
    ((x,), (transposed, row), (*scales,)) = torch.load(tmp_path / "a.pt/0.pt", weights_only=True)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert transposed.is_contiguous()
    assert (transposed.tolist(), row.tolist()) == ([[0, 3], [1, 4], [2, 5]], [0, 1, 2])
    assert [scale.shape for scale in scales] == [transposed.shape, row.shape]
