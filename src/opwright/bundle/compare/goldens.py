"""The goldens: the outputs of the model in eager PyTorch, with which every transformed model is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.bundle.compare.deviation import TOLERANCES, deviations
from opwright.bundle.compare.golden import Golden, plain
from opwright.bundle.compare.outputs import flat, names_of
from opwright.bundle.compare.scales import scales_of
from opwright.bundle.error_summary import error_summary
from opwright.bundle.format.manifest import Dimension, Output
from opwright.bundle.format.names import check_name
from opwright.bundle.source import shape
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opwright.bundle.source.samples import Inputs
    from opwright.bundle.source.shape import Shape


@dataclass(frozen=True)
class Goldens:
    """The calls with which transformed models are compared.

    Attributes:
        kept: the samples, which are written to the bundle.
        probes: samples resized to other sizes of the claimed ranges, which are not written.
        outputs: the outputs, as the manifest lists them.
    """

    kept: tuple[Golden, ...]
    probes: tuple[Golden, ...]
    outputs: tuple[Output, ...]

    @property
    def all(self) -> tuple[Golden, ...]:
        """The samples and the probes."""
        return self.kept + self.probes


def run_goldens(model: Callable[..., Any], inputs: Inputs) -> Goldens:
    """Run `model` on its samples, and at the smallest and middle sizes of the ranges that they claim.

    Raises:
        BundleError: the model fails, returns anything but tensors, or returns different results the second time.
    """
    words = ["random inputs" if inputs.made_up else f"sample {at}" for at in range(len(inputs.samples))]
    ran = [_run(model, call, what) for call, what in zip(inputs.samples, words, strict=True)]
    kept = tuple(golden for golden, _ in ran)
    _check_repeats(model, kept[0])
    names = ran[0][1]
    if repeated := [name for at, name in enumerate(names) if name in names[:at]]:
        msg = f"several outputs of the model are named {repeated[0]!r}: use distinct keys in the dicts that it returns"
        raise BundleError(msg)
    for golden, other in ran:
        if other != names:
            msg = f"{golden.what} returns the outputs {', '.join(other)}, but the first one returns {', '.join(names)}"
            raise BundleError(msg)
    probes = tuple(_run(model, *probe)[0] for probe in _probes(inputs))
    seen = [golden.outputs for golden in (*kept, *probes)]
    seen += _outputs_of_constants(model, kept[0], names)
    outputs = tuple(_output(name, [run[at] for run in seen]) for at, name in enumerate(names))
    for output in outputs:
        check_name(output.name, "the name of an output")
    return Goldens(kept, probes, outputs)


def _run(model: Callable[..., Any], call: tuple[Tensor, ...], what: str) -> tuple[Golden, tuple[str, ...]]:
    outputs, names = _outputs(model, call, what)
    return Golden(call, outputs, scales_of(model, call, outputs), what), names


def _outputs(
    model: Callable[..., Any], call: tuple[Tensor, ...], what: str
) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
    """The outputs of `model` and their names."""
    try:
        with torch.no_grad():
            result = model(*(tensor.clone() for tensor in call))
    except Exception as error:
        sizes = ", ".join(str(shape.Shape(tensor.dtype, tuple(tensor.shape))) for tensor in call)
        msg = f"the model fails with {what} ({sizes}): {error_summary(error)}"
        raise BundleError(msg) from error
    return tuple(map(plain, flat(result))), names_of(result)


def _check_repeats(model: Callable[..., Any], golden: Golden) -> None:
    again, _ = _outputs(model, golden.inputs, golden.what)
    if max(deviations(again, golden), default=0.0) > TOLERANCES["float32"]:
        msg = (
            "the model returns different results when it runs again with the same inputs: it draws random numbers, or "
            "changes its own state. Ship a model that always returns the same results"
        )
        raise BundleError(msg)


def _probes(inputs: Inputs) -> list[tuple[tuple[Tensor, ...], str]]:
    """Calls within the claimed ranges, at other sizes than those of the samples."""
    if not any(one.varies for one in inputs.shapes) or inputs.made_up:
        return []
    known = {tuple(tuple(tensor.shape) for tensor in call) for call in inputs.samples}
    probes = []
    for wanted in (shape.smallest(inputs.shapes), shape.middle(inputs.shapes)):
        if tuple(wanted) not in known:
            known.add(tuple(wanted))
            call = tuple(shape.stretched(*pair) for pair in zip(inputs.samples[0], wanted, strict=True))
            probes.append((call, "the first sample at other claimed sizes"))
    return probes


def _outputs_of_constants(
    model: Callable[..., Any], golden: Golden, names: tuple[str, ...]
) -> list[tuple[Tensor, ...]]:
    """The outputs for inputs filled with one value of the sample: their sizes change if they depend on values."""
    call = tuple(tensor.flatten()[:1].expand(tensor.shape) if tensor.numel() else tensor for tensor in golden.inputs)
    try:
        outputs, named = _outputs(model, call, "one value of the first sample everywhere")
    except BundleError:
        return []  # the model may have further requirements
    return [outputs] if named == names else []


def _output(name: str, tensors: Sequence[Tensor]) -> Output:
    first = tensors[0]
    for tensor in tensors:
        if tensor.dtype != first.dtype or tensor.dim() != first.dim():
            msg = f"the output {name!r} has a different dtype or number of dimensions at different sizes"
            raise BundleError(msg)
    found: Shape = shape.shape_of(tensors)
    dims = tuple(None if isinstance(dim, Dimension) else dim for dim in found.dims)
    return Output(name, shape.dtype_name(first.dtype), dims)
