from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

from opwright.bundle.format.manifest import Dimension, ImageRecipe
from opwright.bundle.source.find import Source
from opwright.bundle.source.samples import find_inputs, read_samples
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

ONES = torch.ones
RECIPE = {"resize": 256, "crop": (224, 200), "mean": (0.1, 0.2, 0.3), "std": (1, 2, 3)}


def source(parameters: tuple[str, ...] = ("image", "warp", "more"), **said: Any) -> Source:
    return Source("the model", nn.Identity(), "module", parameters, **said)


@pytest.mark.parametrize(
    "samples",
    [
        [(ONES(1, 3), ONES(3, dtype=torch.float64)), (ONES(4, 3), ONES(3, dtype=torch.float64))],
        [[ONES(1, 3), ONES(3, dtype=torch.float64)], (ONES(4, 3), ONES(3, dtype=torch.float64))],
        [{"warp": ONES(3, dtype=torch.float64), "image": ONES(n, 3)} for n in (1, 4)],
    ],
    ids=["tuples", "lists", "dicts"],
)
def test_samples_are_in_the_order_of_forward_or_by_name(samples: list[Any]) -> None:
    inputs = find_inputs(source(), samples, {})
    assert inputs.names == ("image", "warp")
    assert [str(one) for one in inputs.shapes] == ["float32[1..4,3]", "float64[3]"]
    assert [[tuple(tensor.shape) for tensor in call] for call in inputs.samples] == [[(1, 3), (3,)], [(4, 3), (3,)]]


def test_a_single_tensor_is_the_first_input() -> None:
    inputs = find_inputs(source(), [ONES(2), ONES(2)], {})
    assert inputs.names == ("image",)
    assert inputs.shapes[0].dims == (2,)


def test_samples_move_to_a_device_and_everything_else_is_unchanged() -> None:
    inputs = find_inputs(source(), [ONES(2), ONES(2)], {})
    moved = inputs.on("meta")
    assert {tensor.device.type for call in moved.samples for tensor in call} == {"meta"}
    assert (moved.names, moved.shapes) == (inputs.names, inputs.shapes)


def test_the_authors_samples_and_shapes_are_used_unless_others_are_given() -> None:
    def samples() -> Iterable[torch.Tensor]:
        yield ONES(2)

    inputs = find_inputs(source(samples=samples, shapes={"image": "1.."}), None, {})
    assert inputs.shapes[0].dims == (Dimension(1, None),)
    said = find_inputs(source(samples=samples, shapes={"image": "1.."}), [ONES(3)], {"image": "2..3"})
    assert said.shapes[0].dims == (Dimension(2, 3),)


def test_samples_are_generated_at_the_smallest_and_a_middle_size_if_only_shapes_are_given() -> None:
    inputs = find_inputs(source(), None, {"image": "1..9,2", "warp": "int64[3]"})
    assert inputs.made_up
    assert [tuple(call[0].shape) for call in inputs.samples] == [(1, 2), (5, 2)]
    again = find_inputs(source(), None, {"image": "1..9,2", "warp": "int64[3]"})
    assert all(torch.equal(*pair) for pair in zip(inputs.samples[1], again.samples[1], strict=True))


def test_inputs_of_a_package_without_known_names_are_named_by_their_shapes_or_numbered() -> None:
    assert find_inputs(source(()), [(ONES(1), ONES(2))], {}).names == ("input_0", "input_1")
    assert find_inputs(source(()), [(ONES(1), ONES(2))], {"a": "1", "b": "2"}).names == ("a", "b")
    assert find_inputs(source(()), [{"a": ONES(1)}], {}).names == ("a",)


@pytest.mark.parametrize(
    ("samples", "shapes", "message"),
    [
        (None, {}, "the inputs of the model are unknown: define a function samples() next to it"),
        ([], {}, "or pass --samples FILE, or --shape image=float32[1..64,3,224,224] for each input"),
        ([(ONES(1),) * 4], {}, "a sample is given for 4 inputs, but forward accepts image, warp, more"),
        (
            [{"warp": ONES(1)}],
            {},
            "a sample is given for warp, but forward accepts image, warp, more: expected the first",
        ),
        (None, {"more": "1"}, "shapes are given for more, but forward accepts image, warp, more"),
        ([ONES(1), (ONES(1), ONES(1))], {}, "sample 1 has 2 inputs: expected 1 (image), as in the first sample"),
        ([{"image": ONES(1)}, {"warp": ONES(1)}], {}, "sample 1 names warp: expected image, as in the first sample"),
        ([(ONES(1), 3)], {}, "the input 'warp' of sample 0 is a int: a bundle's inputs are tensors"),
        (["cat.jpg"], {}, "the input 'image' of sample 0 is a str: a bundle's inputs are tensors"),
        ([ONES(2).to_sparse()], {}, "is not dense: a bundle accepts only dense tensors"),
        (
            [ONES(1), ONES(1).long()],
            {},
            "the samples of 'image' differ in more than their sizes: float32 (1,) and int64 (1,)",
        ),
        (
            [ONES(1), ONES(1, 1)],
            {},
            "the samples of 'image' differ in more than their sizes: float32 (1,) and float32 (1, 1)",
        ),
        ([ONES(5)], {"image": "1..4"}, "sample 0 of 'image' does not have the given shape: float32[5] is not float32"),
        ([ONES(5)], {"picture": "5"}, "there is a shape for 'picture', which is not an input: the inputs are image"),
    ],
)
def test_samples_and_shapes_that_do_not_match_are_rejected(
    samples: list[Any] | None, shapes: dict[str, str], message: str
) -> None:
    with pytest.raises(BundleError) as refused:
        find_inputs(source(), samples, shapes)
    assert message in str(refused.value)


def test_samples_that_fail_are_rejected_with_their_error() -> None:
    def samples() -> Iterable[torch.Tensor]:
        yield ONES(1)
        message = "the camera is off"
        raise OSError(message)

    with pytest.raises(BundleError, match=r"samples\(\) of the model failed: OSError: the camera is off"):
        find_inputs(source(samples=samples), None, {})


def test_an_image_recipe_is_stored_with_its_input() -> None:
    inputs = find_inputs(source(images={"image": RECIPE}), [ONES(1, 3, 224, 200)], {})
    assert inputs.images == (ImageRecipe(256, (224, 200), (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)),)
    square = find_inputs(source(images={"image": {**RECIPE, "crop": 224}}), [ONES(1, 3, 224, 224)], {})
    assert square.images[0] is not None
    assert square.images[0].crop == (224, 224)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({}, ": the key 'resize' is missing"),
        ([], " is []: expected a dict with resize, crop, mean and std"),
        ({**RECIPE, "flip": True}, ": the key 'flip' is unknown"),
        ({**RECIPE, "resize": 0}, ": 'resize' must be a whole number of at least 1, got 0"),
        ({**RECIPE, "resize": 65537}, ": 'resize' must be a whole number of at most 65536, got 65537"),
        ({**RECIPE, "resize": "256"}, ": 'resize' must be a whole number, got '256'"),
        ({**RECIPE, "resize": True}, ": 'resize' must be a whole number, got True"),
        ({**RECIPE, "crop": (224,)}, ": 'crop' must be a list of length 2, got (224,)"),
        ({**RECIPE, "crop": (257, 257)}, " must be a crop no larger than resize, got {"),
        ({**RECIPE, "mean": (0.5,)}, ": 'mean' must be a list of length 3, got [0.5]"),
        ({**RECIPE, "mean": "abc"}, ": expected mean and std of three numbers each"),
        ({**RECIPE, "mean": (0, 10**400, 0)}, ": expected mean and std of three numbers each"),
        ({**RECIPE, "mean": (0, math.nan, 0)}, " must be a mean and an std of finite numbers, with no std of 0, got {"),
        ({**RECIPE, "std": (1, 1, math.inf)}, " must be a mean and an std of finite numbers, with no std of 0, got {"),
        ({**RECIPE, "std": (1, 0, 1)}, " must be a mean and an std of finite numbers, with no std of 0, got {"),
    ],
)
def test_an_image_recipe_that_a_host_would_reject_is_rejected(recipe: object, message: str) -> None:
    with pytest.raises(BundleError) as refused:
        find_inputs(source(images={"image": recipe}), [ONES(1)], {})
    assert str(refused.value).startswith("the image recipe of 'image'")
    assert message in str(refused.value)


def test_an_image_recipe_may_contain_numbers_of_numpy_and_torch() -> None:
    recipe = {**RECIPE, "mean": np.array([0.5, 0.25, 0], np.float32), "std": ONES(3)}
    (image,) = find_inputs(source(images={"image": recipe}), [ONES(1)], {}).images
    assert image == ImageRecipe(256, (224, 200), (0.5, 0.25, 0.0), (1.0, 1.0, 1.0))


def test_too_many_samples_and_names_that_are_not_text_are_rejected() -> None:
    with pytest.raises(BundleError, match="there are 4097 samples, but a bundle holds at most 4096"):
        find_inputs(source(), [ONES(1)] * 4097, {})
    with pytest.raises(BundleError, match="the name of an input is 1: expected 1 to 255 bytes of text"):
        find_inputs(source(()), [{1: ONES(1)}], {})


@pytest.mark.parametrize(
    ("name", "write", "calls"),
    [
        ("a.npy", lambda path: np.save(path, np.ones(3, np.float32)), [(ONES(3),)]),
        (
            "a.npz",
            lambda path: np.savez(path, image=np.ones(3), warp=np.ones(2)),
            [(ONES(3).double(), ONES(2).double())],
        ),
        ("a.pt", lambda path: torch.save(ONES(3), path), [(ONES(3),)]),
        ("a.pt", lambda path: torch.save((ONES(3), ONES(2)), path), [(ONES(3), ONES(2))]),
        ("a.pt", lambda path: torch.save([ONES(3), ONES(4)], path), [(ONES(3),), (ONES(4),)]),
        ("a.pt", lambda path: torch.save({"image": ONES(3)}, path), [(ONES(3),)]),
    ],
)
def test_samples_are_read_from_files(
    tmp_path: Path, name: str, write: Callable[[Path], object], calls: list[tuple[torch.Tensor, ...]]
) -> None:
    write(tmp_path / name)
    found = find_inputs(source(), read_samples(tmp_path / name), {}).samples
    assert [[tensor.tolist() for tensor in call] for call in found] == [
        [tensor.tolist() for tensor in call] for call in calls
    ]


def test_a_file_without_samples_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_text("no")
    np.save(tmp_path / "objects.npy", np.array([object()]), allow_pickle=True)
    for name in ("a.npy", "objects.npy", "missing.pt"):
        with pytest.raises(BundleError, match=rf"the samples .*{name} cannot be read: .*\. Expected \.npy, \.npz, or"):
            read_samples(tmp_path / name)
