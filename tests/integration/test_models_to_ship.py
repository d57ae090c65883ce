"""The example models with native operators return correct results, in each form in which they are shipped."""

from __future__ import annotations

import importlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "models"))


@dataclass(frozen=True)
class Shipped:
    """A model, its module, the operator that it calls, and its dynamic sizes."""

    module: Any
    model: nn.Module
    operator: str
    sizes: tuple[dict[int, Any], ...]

    def differs_by(self, form: Callable[..., Tensor]) -> float:
        """The largest deviation of a form of the model from it on its samples, relative to the largest score."""
        found = []
        with torch.no_grad():
            for inputs in self.module.samples():
                expected, got = self.model(*inputs), form(*inputs)
                assert got.shape == expected.shape
                found.append(float((got - expected).abs().max() / expected.abs().max()))
        return max(found)


@pytest.fixture(scope="module")
def surface() -> Shipped:
    opwright.open(ROOT / "ops" / "warp_perspective")
    module: Any = importlib.import_module("surface")
    sizes = {0: Dim("height", min=64, max=4096), 1: Dim("width", min=64, max=4096)}
    return Shipped(module, module.surface(), "opencv::warp_perspective", (sizes, {}))


@pytest.fixture(scope="module")
def digit_reader() -> Shipped:
    module: Any = importlib.import_module("digit_reader")
    sizes = {0: Dim("batch", min=1, max=64)}
    return Shipped(module, module.digit_reader(), "lltm::sequence", (sizes,))


@pytest.fixture(params=["digit_reader", pytest.param("surface", marks=pytest.mark.needs("opencv"))])
def shipped(request: pytest.FixtureRequest) -> Shipped:
    found: Shipped = request.getfixturevalue(request.param)
    return found


def test_a_scripted_model_equals_the_model_before_and_after_saving(shipped: Shipped) -> None:
    scripted: Any = torch.jit.script(shipped.model)
    assert shipped.operator in str(scripted.inlined_graph)
    assert [argument.name for argument in scripted.forward.schema.arguments] == ["self", *shipped.module.shapes]
    loaded = torch.jit.load(io.BytesIO(scripted.save_to_buffer()))
    assert shipped.differs_by(loaded) == 0
    assert shipped.differs_by(torch.jit.freeze(loaded)) < 1e-5


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_traced_model_equals_the_model(shipped: Shipped) -> None:
    first = next(shipped.module.samples())
    assert shipped.differs_by(torch.jit.trace(shipped.model, first)) == 0


def test_an_exported_model_equals_the_model_at_every_size(shipped: Shipped) -> None:
    first = next(shipped.module.samples())
    with torch.no_grad():
        exported = torch.export.export(shipped.model, first, dynamic_shapes=shipped.sizes, strict=False)
    called = shipped.operator.replace("::", ".") + ".default"
    assert called in [str(node.target) for node in exported.graph.nodes]
    assert shipped.differs_by(exported.module()) == 0


def test_samples_have_several_sizes_and_the_declared_dtypes(shipped: Shipped) -> None:
    samples = list(shipped.module.samples())
    assert len({tuple(first.shape) for first, *_ in samples}) > 1
    said = [shape.partition("[")[0] for shape in shipped.module.shapes.values()]
    assert {tuple(str(tensor.dtype).removeprefix("torch.") for tensor in sample) for sample in samples} == {tuple(said)}


@pytest.mark.needs("opencv")
def test_surfaces_are_distinguished_in_views_that_were_not_used_for_training(surface: Shipped) -> None:
    generator = torch.Generator().manual_seed(2)
    photographs, right = surface.module.photographs(), []
    with torch.no_grad():
        for number, name in enumerate(surface.module.SURFACES):
            looks = [surface.module.look(photographs[name], generator) for _ in range(20)]
            right += [int(surface.model(photographs[name], look).argmax()) == number for look in looks]
    assert sum(right) > 0.85 * len(right)


def test_digits_that_were_not_used_for_training_are_recognized(digit_reader: Shipped) -> None:
    _, digits = digit_reader.module.load()
    with torch.no_grad():
        right = digit_reader.model(digits.images).argmax(dim=1) == digits.labels
    assert right.float().mean() > 0.9


def test_digits_are_learned_reproducibly_and_the_number_of_threads_is_restored(digit_reader: Shipped) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    again = digit_reader.module.digit_reader()
    assert torch.get_num_threads() == threads + 1
    torch.set_num_threads(threads)
    assert all(map(torch.equal, again.state_dict().values(), digit_reader.model.state_dict().values()))


@pytest.mark.needs("opencv")
def test_surfaces_are_learned_reproducibly(surface: Shipped) -> None:
    again = surface.module.surface()
    assert all(map(torch.equal, again.state_dict().values(), surface.model.state_dict().values()))
