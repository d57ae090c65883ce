from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.combined import combined

if TYPE_CHECKING:
    from opwright.spec import Op
    from tests.unit.conftest import Describe

RESIZE = """
@library.op
def f(x: Tensor, width: int, sizes: Sequence[int], mode: str, scale: float | None = None) -> Tensor:
    return x[:, torch.arange(width) * x.shape[1] // width] if mode == "floor" else x
"""


def described(describe: Describe) -> Op:
    return describe(RESIZE).ops["f"]


def sample() -> Case:
    arguments = {"x": torch.randn(5, 12), "width": 24, "sizes": [3, 4], "mode": "floor", "scale": None}
    return Case("sample 1", Family.SAMPLE, arguments)


def test_sizes_and_integers_are_varied_together(describe: Describe) -> None:
    cases = list(combined(described(describe), [sample()], 200, seed=3))
    assert len(cases) == 200
    assert len({case.name for case in cases}) == 200
    both = [case for case in cases if case.arguments["x"].shape[1] != 12 and case.arguments["width"] != 24]
    assert len(both) > 50
    assert len({(case.arguments["x"].shape[1], case.arguments["width"]) for case in both}) > 50
    assert {case.arguments["mode"] for case in cases} > {"floor"}
    assert any(case.arguments["scale"] is not None for case in cases)
    assert any(len(set(case.arguments["sizes"])) == 2 and case.arguments["sizes"] != [3, 4] for case in cases)


def test_the_name_lists_the_differences(describe: Describe) -> None:
    for case in combined(described(describe), [sample()], 50, seed=4):
        given = case.arguments
        assert case.family is Family.PAIR
        for dim, old in enumerate((5, 12)):
            new = given["x"].shape[dim]
            assert (f"dimensions of {old} as {new}" in case.name) == (new != old)
        assert (f"width={given['width']}" in case.name) or given["width"] == 24


def test_equal_dimensions_remain_equal_and_tensors_remain_small(describe: Describe) -> None:
    op = describe("@library.op\ndef f(x: Tensor, y: Tensor, n: int) -> Tensor:\n    return x @ y\n").ops["f"]
    one = Case("sample 1", Family.SAMPLE, {"x": torch.randn(40, 50), "y": torch.randn(50, 60), "n": 1})
    for case in combined(op, [one], 100, seed=5):
        x, y = case.arguments["x"], case.arguments["y"]
        assert x.shape[1] == y.shape[0]
        assert max(x.numel(), y.numel()) <= 2**18


def test_the_seed_determines_the_calls_and_the_sample_is_unchanged(describe: Describe) -> None:
    op, one = described(describe), sample()
    before = one.arguments["x"].clone()
    names = [[case.name for case in combined(op, [one], 30, seed=seed)] for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]
    assert torch.equal(one.arguments["x"], before)


def test_a_call_with_nothing_to_vary_has_no_variations(describe: Describe) -> None:
    op = describe("@library.op\ndef f(x: Tensor) -> Tensor:\n    return x + 1\n").ops["f"]
    assert list(combined(op, [Case("sample 1", Family.SAMPLE, {"x": torch.ones(())})], 9, seed=0)) == []
