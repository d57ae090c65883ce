from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import torch

from opwright.bundle.format.manifest import FILE_NAME, Dimension, FileFacts, Input, Manifest, Output
from opwright.errors import BundleError
from opwright.scale.facts.bundle_facts import BundleFacts, InputFacts, OutputFacts, read_facts

Dims = tuple[int | Dimension, ...]
ROWS, TWO = Dimension(1, 16), Dimension(2, 16)


@dataclass
class Shipped:
    """A folder with a given manifest, and with goldens."""

    folder: Path
    manifest: Manifest

    def write(self) -> Path:
        (self.folder / FILE_NAME).write_bytes(msgspec.json.encode(self.manifest))
        return self.folder

    def golden(self, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> Path:
        name = f"goldens/{len(self.manifest.goldens)}.pt"
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        torch.save(([torch.zeros(one) for one in inputs], [torch.zeros(one) for one in outputs], {}), path)
        content = path.read_bytes()
        facts = FileFacts(len(content), hashlib.sha256(content).hexdigest())
        self.manifest = msgspec.structs.replace(
            self.manifest, goldens=(*self.manifest.goldens, name), files={**self.manifest.files, name: facts}
        )
        return path


Ship = Callable[[list[Dims], list[tuple[int | None, ...]]], Shipped]


@pytest.fixture
def ship(tmp_path: Path, manifest: Manifest) -> Ship:
    def ship(inputs: list[Dims], outputs: list[tuple[int | None, ...]]) -> Shipped:
        files = {name: facts for name, facts in manifest.files.items() if not name.startswith("goldens/")}
        changed = msgspec.structs.replace(
            manifest,
            inputs=tuple(Input(f"x{place}", "float32", dims, None) for place, dims in enumerate(inputs)),
            outputs=tuple(Output(f"y{place}", "float32", dims) for place, dims in enumerate(outputs)),
            equal_dims=(),
            goldens=(),
            files=files,
        )
        return Shipped(tmp_path, changed)

    return ship


def facts_of(shipped: Shipped) -> BundleFacts:
    return read_facts(shipped.write())


def test_the_facts_are_those_of_the_manifest(ship: Ship) -> None:
    shipped = ship([(ROWS, 3), ()], [(None, 5)])
    shipped.golden([(2, 3), ()], [(2, 5)])
    facts = facts_of(shipped)
    assert facts.digest == hashlib.sha256((shipped.folder / FILE_NAME).read_bytes()).hexdigest()
    assert facts.inputs == (InputFacts("x0", "float32", ((1, 16), (3, 3))), InputFacts("x1", "float32", ()))
    assert facts.outputs == (OutputFacts("y0", "float32", (1, 5), 2, has_row=True),)
    assert (facts.device, facts.is_self_contained) == ("cpu", False)
    assert facts.model_bytes == shipped.manifest.files[shipped.manifest.model.file].bytes


@pytest.mark.parametrize(
    ("inputs", "outputs", "goldens", "most_rows"),
    [
        ([(ROWS, 3)], [(None, 5)], [(2, 2)], 16),
        ([(Dimension(1, None), 3)], [(None, 5)], [(2, 2)], None),
        ([(ROWS, 3), (Dimension(1, 4),)], [(None, 5)], [(2, 2)], 4),
        ([(ROWS, 3), (7,)], [(None, 5)], [(2, 2)], 1),
        ([(ROWS, 3), ()], [(None, 5)], [(2, 2)], 1),
        ([(TWO, 3)], [(None, 5)], [(2, 2)], 1),
        ([(1, 3)], [(None, 5)], [(1, 1)], 1),
        ([(ROWS, 3)], [(2, 5)], [(2, 2)], 1),
        ([(ROWS, 3)], [(None, 5)], [(2, 2), (3, 4)], 1),
        ([(ROWS, 3)], [(None, 5)], [], 1),
        ([(ROWS, 3)], [()], [(2, 0)], 1),
        ([], [(None,)], [(0, 2)], 1),
    ],
)
def test_rows_run_together_if_inputs_and_outputs_have_a_row_dimension(
    ship: Ship,
    inputs: list[Dims],
    outputs: list[tuple[int | None, ...]],
    goldens: list[tuple[int, int]],
    most_rows: int,
) -> None:
    shipped = ship(inputs, outputs)
    for taken, given in goldens:
        sizes = [tuple([taken, *[3] * (len(dims) - 1)][: len(dims)]) for dims in inputs]
        shipped.golden(sizes, [tuple([given, *[5] * (len(dims) - 1)][: len(dims)]) for dims in outputs])
    assert facts_of(shipped).most_rows == most_rows


@pytest.mark.parametrize(
    ("dims", "shape"),
    [((None, 5), (1, 5)), ((None, None), None), ((4, 5), (4, 5)), ((), ()), ((None,), (1,)), ((3, None), None)],
)
def test_an_output_whose_first_size_follows_the_rows_has_one_entry_per_row(
    ship: Ship, dims: tuple[int | None, ...], shape: tuple[int, ...] | None
) -> None:
    shipped = ship([(ROWS, 3)], [dims])
    shipped.golden([(2, 3)], [tuple(2 if dim is None else dim for dim in dims)])
    assert facts_of(shipped).outputs[0].shape == shape


def test_a_folder_without_a_manifest_is_rejected(tmp_path: Path) -> None:
    text = (
        f"{tmp_path} is not a bundle: manifest.json cannot be read (No such file or directory). `opwright ship` creates"
    )
    with pytest.raises(BundleError, match=f"^{re.escape(text)} one$"):
        read_facts(tmp_path)


def test_a_changed_golden_is_not_read(ship: Ship) -> None:
    shipped = ship([(ROWS, 3)], [(None, 5)])
    path = shipped.golden([(2, 3)], [(2, 5)])
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BundleError, match=f"^{path} has changed since it was shipped: copy the bundle again$"):
        facts_of(shipped)
    path.unlink()
    with pytest.raises(
        BundleError, match=f"^{path} cannot be read: No such file or directory. Copy the whole bundle again$"
    ):
        facts_of(shipped)


def test_a_golden_with_too_few_outputs_is_rejected(ship: Ship) -> None:
    shipped = ship([(ROWS, 3)], [(None, 5), (None, 5)])
    path = shipped.golden([(2, 3)], [(2, 5)])
    with pytest.raises(BundleError, match=f"^{path} has 1 inputs and 1 outputs, unlike the model: ship it again$"):
        facts_of(shipped)
