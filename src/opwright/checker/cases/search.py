"""Searches for calls of an operator beyond its samples: other dtypes, layouts, sizes and values, and bad inputs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, Family, size_family
from opwright.checker.cases.layouts import far_apart, layouts
from opwright.checker.cases.resized import resized
from opwright.checker.cases.samples import by_size, elements_in, redrawn
from opwright.checker.cases.sizes import size_slots
from opwright.spec import Make, derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opwright.checker.job import Options
    from opwright.spec import Op

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32)
# Around the widths of vectors, and one that is large enough for several threads.
_SIZES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33)
_QUICK_SIZES = (0, 1, 9, 17)
_LARGE_SIZE = 4099
_MOST_ELEMENTS = 2**21
# Only the smallest samples vary in layouts, sizes and numbers: photographs would take minutes.
_VARIED_SAMPLES = 2
_MOST_SIZES_VARIED = 4
_OTHER_DTYPES = {True: torch.float64, False: torch.float32}


def varied(op: Op, given: list[Case], device: str, options: Options) -> list[Case]:
    """Variations of the samples `given`."""
    smallest = by_size(given)
    chosen = sorted(smallest[: 1 if options.quick else _VARIED_SAMPLES])
    sizes = list(_sizes(op, given, chosen, device, options))
    cases = [
        *_dtypes(op, given, chosen, device, options),
        *(case for at in chosen for case in _layouts(given[at])),
        *sizes,
        *(case for at in chosen for case in resized(given[at], _of(given[at], sizes), quick=options.quick)),
        *(case for at in chosen for case in _special(given[at])),
        *_far(given[smallest[0]], op),
        *_bad(given[smallest[0]]),
    ]
    by_name: dict[str, Case] = {}
    for case in cases:
        by_name.setdefault(case.name, case)
    return list(by_name.values())


def _dtypes(op: Op, given: list[Case], chosen: list[int], device: str, options: Options) -> Iterator[Case]:
    for dtype in dict.fromkeys((*op.dtypes, *_DTYPES)):
        made = redrawn(op, Make(seed=options.seed, dtype=dtype, device=device), max(chosen) + 1)
        for at in chosen:
            if at < len(made) and _dtypes_of(made[at]) != _dtypes_of(given[at].arguments):
                name = f"{given[at].name} in {str(dtype).removeprefix('torch.')}"
                yield Case(name, Family.DTYPE, made[at], claimed=dtype in op.dtypes)


def _layouts(case: Case) -> Iterator[Case]:
    for path, tensor in _tensors(case.arguments):
        for name, family, other in layouts(tensor):
            yield _replaced(case, f"{path} {name}", family, path, other)


def _sizes(op: Op, given: list[Case], chosen: list[int], device: str, options: Options) -> Iterator[Case]:
    needed = given[: max(chosen) + 1]
    most = max(_MOST_ELEMENTS, *(elements_in(case.arguments) for case in needed))
    sizes = _QUICK_SIZES if options.quick else (*_SIZES, _LARGE_SIZE)
    for slot, size in itertools.product(size_slots(op, device, options.seed)[:_MOST_SIZES_VARIED], sizes):
        if size == slot.default:
            continue
        make = Make(seed=options.seed, device=device, most_elements=most, **slot.resized(size))
        made = redrawn(op, make, len(needed))
        for at in chosen:
            if at >= len(made) or _shapes_of(made[at]) == _shapes_of(given[at].arguments):
                continue
            if elements_in(made[at]) <= _MOST_ELEMENTS:
                yield Case(f"{given[at].name}, {slot.name} as {size}", size_family(size), made[at])


def _of(sample: Case, cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.name.startswith(f"{sample.name}, ")]


def _special(case: Case) -> Iterator[Case]:
    values = {
        "NaN": [float("nan")],
        "infinities": [float("inf"), float("-inf")],
        "denormals and signed zeros": [1e-40, -1e-40, -0.0, 0.0],
    }
    for name, numbers in values.items():
        changed = pytree.tree_map_only(Tensor, _sprinkler(numbers), case.arguments)
        if any(leaf.is_floating_point() and leaf.numel() for leaf in derive.tensors(changed)):
            yield Case(f"{case.name} with {name}", Family.SPECIAL, changed)


def _sprinkler(numbers: list[float]) -> Callable[[Tensor], Tensor]:
    def sprinkle(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or tensor.numel() == 0:
            return tensor
        # Every fifth element, beginning at the first: some rows and vectors have one, some have none.
        flat = tensor.contiguous().clone().flatten()
        places = torch.arange(0, flat.numel(), 5)
        flat[places] = torch.tensor(numbers, dtype=flat.dtype, device=flat.device).repeat(len(places))[: len(places)]
        return flat.view(tensor.shape)

    return sprinkle


def _far(case: Case, op: Op) -> Iterator[Case]:
    for path, tensor in _tensors(case.arguments):
        if path in op.mutates:
            continue  # such memory is never copied: the reference and the operator would write to the same
        if (far := far_apart(tensor)) is not None:
            yield _replaced(case, f"{path} with rows more than 2^31 elements apart", Family.FAR, path, far)


def _bad(case: Case) -> Iterator[Case]:
    several = len(_tensors(case.arguments)) > 1
    for path, tensor in _tensors(case.arguments):
        other = _OTHER_DTYPES[tensor.dtype != torch.float64 and tensor.is_floating_point()]
        yield _replaced(
            case, f"{path} alone in {str(other).removeprefix('torch.')}", Family.BAD_DTYPE, path, tensor.to(other)
        )
        if tensor.dtype != torch.int64:
            yield _replaced(case, f"{path} alone in int64", Family.BAD_DTYPE, path, tensor.to(torch.int64))
        yield _replaced(case, f"{path} with one dimension more", Family.BAD_RANK, path, tensor.unsqueeze(0))
        if tensor.dim() > 0 and tensor.shape[0] > 0:
            yield _replaced(case, f"{path} with one dimension less", Family.BAD_RANK, path, tensor[0].clone())
        if tensor.dim() > 1:
            yield _replaced(case, f"{path} flattened", Family.BAD_RANK, path, tensor.flatten().clone())
        if not several:
            continue
        for dim in range(min(tensor.dim(), 2)):
            if tensor.shape[dim] > 1:
                less = tensor.narrow(dim, 0, tensor.shape[dim] - 1).clone(memory_format=torch.contiguous_format)
                yield _replaced(case, f"{path} one shorter in dimension {dim}", Family.BAD_SIZE, path, less)
                more = torch.cat([tensor, tensor.narrow(dim, 0, 1)], dim)
                yield _replaced(case, f"{path} one longer in dimension {dim}", Family.BAD_SIZE, path, more)
        if tensor.device.type != "meta" and tensor.dim() > 0:
            yield _replaced(case, f"{path} on the meta device", Family.BAD_DEVICE, path, tensor.to("meta"))


def _tensors(arguments: dict[str, Any]) -> list[tuple[str, Tensor]]:
    """The tensors of a call, each with its name in messages: `x`, or `xs[0]`."""
    found = []
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            found.append((name, value))
        elif isinstance(value, (list, tuple)):
            found += [(f"{name}[{at}]", one) for at, one in enumerate(value) if isinstance(one, Tensor)]
    return found


def _replaced(case: Case, what: str, family: Family, path: str, tensor: Tensor) -> Case:
    """`case` with the tensor at `path` replaced."""
    name, _, place = path.partition("[")
    value: Any = tensor
    if place:
        value = list(case.arguments[name])
        value[int(place.rstrip("]"))] = tensor
    return Case(f"{case.name}, {what}", family, {**case.arguments, name: value}, argument=path)


def _dtypes_of(arguments: dict[str, Any]) -> list[torch.dtype]:
    return [tensor.dtype for tensor in derive.tensors(arguments)]


def _shapes_of(arguments: dict[str, Any]) -> list[torch.Size]:
    return [tensor.shape for tensor in derive.tensors(arguments)]
