"""No text in the JSON of an exported program reaches PyTorch unchecked, whatever its place."""

from __future__ import annotations

import contextlib
import copy
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.export import Dim

from opwright.bundle.source.exported import rewrite_program
from opwright.bundle.source.program import checked_payloads, checked_program
from opwright.bundle.source.saved import load_saved
from opwright.errors import BundleError
from tests.integration.bundle.hostile.archive import read, write
from tests.integration.bundle.hostile.kind import python

FILES = ("models/model.json", "data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
Place = tuple[Any, ...]
# Occurs in every payload below, and in PyTorch's own output only in guards and sizes.
MARK = b"('"


class Rich(nn.Module):
    """Has many kinds of text in its exported JSON: subgraphs, symbols, assertions, nested inputs."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.ModuleDict({"a-b": nn.Linear(4, 4)})
        self.register_buffer("count", torch.zeros(1))
        self.plain = torch.ones(4)

    def forward(self, x: Tensor, *, more: dict[str, Tensor]) -> dict[str, Any]:
        self.count.copy_(self.count + 1)
        wide = torch.einsum("bi,ij->bj", self.linear["a-b"](x), self.linear["a-b"].weight) + self.plain
        wide = wide.div(2, rounding_mode="floor").to(torch.float64).clamp(min=float("-inf"))
        chosen = torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (wide,))
        size: Any = more["size"].sum().item()
        torch._check(size >= 0)
        torch._check(size < 20)
        with torch.no_grad():
            tail = (x.split(2, 1)[0], [x[..., None].sin()])
        return {"chosen": chosen, "made": torch.ones((x.shape[0] + 3) // 4, size), "tail": tail}


@pytest.fixture(scope="session")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rich") / "rich.pt2"
    named = {"more": {"size": torch.ones(3, dtype=torch.int64)}}
    shapes = {"x": {0: Dim.DYNAMIC}, "more": {"size": {0: Dim.DYNAMIC}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.cond looks at gradients
        program = torch.export.export(Rich().eval(), (torch.randn(3, 4),), named, dynamic_shapes=shapes)
    torch.export.save(program, path)
    return path


@pytest.fixture(scope="session")
def program(rich: Path) -> dict[str, Any]:
    records = read(rich)
    return {name: json.loads(records[name]) for name in FILES}


def texts(value: Any, place: Place = ()) -> Iterator[tuple[Place, bool]]:
    """The places of all texts, and whether each is the key of an object."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key), True
            yield from texts(inner, (*place, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from texts(inner, (*place, at))
    else:  # any other value could be text in a hostile file
        yield place, False


def changed(program: dict[str, Any], place: Place, key: bool, change: Callable[[Any], Any]) -> dict[str, Any]:
    made = copy.deepcopy(program)
    inside: Any = made
    for step in place[:-1]:
        inside = inside[step]
    if key:
        items = [(change(name) if name == place[-1] else name, value) for name, value in inside.items()]
        inside.clear()
        inside.update(items)
    else:
        inside[place[-1]] = change(inside[place[-1]])
    return made


def rewritten(records: dict[str, bytes], program: dict[str, Any], folder: Path) -> Path | None:
    """The archive that PyTorch receives instead of one with this JSON; None if it is rejected."""
    given, plain = folder / "given.pt2", folder / "plain.pt2"
    write(given, records | {name: json.dumps(held).encode() for name, held in program.items()})
    try:
        rewrite_program(given, plain)
    except (ValueError, zipfile.BadZipFile):
        return None
    return plain


PAYLOADS: tuple[Callable[[Any], Any], ...] = (
    lambda _: "__import__('pathlib').Path('canary').touch()",
    lambda text: f"{text}=[__import__('pathlib').Path('canary').touch()]",
    lambda text: f"{text}\"); __import__('pathlib').Path('canary').touch(); (\"",
    lambda text: f"{text}' + str(__import__('pathlib').Path('canary').touch()) + '",
    lambda text: f"{text}\n    exec('1')",
    lambda text: f"{text}.touch('1')",
)


def checked(name: str, held: Any) -> bytes | None:
    """The JSON that PyTorch receives instead of this; None if it is rejected."""
    data = json.dumps(held).encode()
    try:
        return checked_program(data) if name == FILES[0] else json.dumps(checked_payloads(data)).encode()
    except (ValueError, zipfile.BadZipFile):
        return None


def test_python_source_at_any_place_is_rejected_or_removed(program: dict[str, Any]) -> None:
    named = program["models/model.json"]["graph_module"]["graph"]["tensor_values"]
    # Of similar places, such as the targets of all nodes, one is enough.
    places = {
        (name, key, tuple(step for step in place if isinstance(step, str) and step not in named)[-3:]): (place, key)
        for name in FILES
        for place, key in texts(program[name], (name,))
        if len(place) > 1
    }
    assert len(places) > 200
    before = {name: checked(name, program[name]) or b"" for name in FILES}
    assert all(before.values())
    left_out = 0
    for number, (place, key) in enumerate(places.values()):
        for payload in (PAYLOADS[0], PAYLOADS[1 + number % (len(PAYLOADS) - 1)]):
            made = checked(place[0], changed(program, place, key, payload)[place[0]])
            if made is not None:
                left_out += 1
                assert made.count(MARK) == before[place[0]].count(MARK), place
    assert left_out


def replacement(text: str) -> Callable[[Any], Any]:
    return lambda _: text


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_program_with_exchanged_texts_runs_no_code(
    data: st.DataObject, rich: Path, program: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    code = python(folder / "canary")
    places = [one for name in FILES for one in texts(program[name], (name,)) if len(one[0]) > 1]
    words = sorted({str(place[-1]) for place, _ in places if isinstance(place[-1], str)})
    change = st.sampled_from(
        [
            code,
            f"({code})",
            f"x={code}",
            f"x: ({code})",
            f"', {code}, '",
            f'", {code}, "',
            f"0]); {code}; ([0",
            f"L['x'].size()[{code}] > 1",
            f"Symbol('s0', integer={code})",
            *(
                "torch.os.system",
                "torch.ops.aten.save.default",
                "_operator.methodcaller",
                "torch.load",
                "math.__loader__",
            ),
            *("touch", "self", "torch", "__class__", "lambda", "getattr", "fx_pytree", "u9", "s0", "", "*", "0", "a b"),
            *words,
        ]
    )
    made = program
    for place, key in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True)):
        text = data.draw(change)
        try:
            made = changed(made, place, key, replacement(text))
        except (KeyError, TypeError):
            continue  # an earlier change has removed this place
    given_file = folder / "changed.pt2"
    records = read(rich) | {name: json.dumps(held).encode() for name, held in made.items()}
    write(given_file, records)
    said = ""
    with contextlib.suppress(Exception):  # PyTorch detected the damage
        try:
            loaded = load_saved(given_file, "exported", trust=False)
            positional, named = loaded.example_inputs
            loaded.module()(*positional, **named)
        except BundleError as error:
            said = str(error)
    assert len(said.splitlines()) <= 1
    assert not (folder / "canary").exists()


def test_a_program_with_excessive_nesting_is_rejected_in_one_line(
    rich: Path, program: dict[str, Any], tmp_path: Path
) -> None:
    records = read(rich)
    text = json.dumps(program["models/model.json"])
    for deep in ("[" * 10**5, '{"a":' * 10**5, "[" * 900 + "]" * 900):
        records["models/model.json"] = text.replace('"guards_code": [', f'"guards_code": [{deep}', 1).encode()
        write(tmp_path / "deep.pt2", records)
        with pytest.raises(BundleError, match=r"deep\.pt2 (is rejected|cannot be loaded): ") as refused:
            load_saved(tmp_path / "deep.pt2", "exported", trust=False)
        assert len(str(refused.value).splitlines()) == 1


def test_a_symbol_that_pytorch_would_count_up_to_is_rejected(
    rich: Path, program: dict[str, Any], tmp_path: Path
) -> None:
    ranges = {"min_val": 0, "max_val": 9}
    made = copy.deepcopy(program)
    made["models/model.json"]["range_constraints"]["u123456"] = ranges
    assert rewritten(read(rich), made, tmp_path) is not None
    made["models/model.json"]["range_constraints"]["u12345678"] = ranges
    assert rewritten(read(rich), made, tmp_path) is None


def test_a_program_without_its_executable_parts_computes_the_same(rich: Path) -> None:
    loaded = load_saved(rich, "exported", trust=False)
    whole = torch.export.load(rich)
    positional, named = whole.example_inputs
    torch.testing.assert_close(loaded.module()(*positional, **named), whole.module()(*positional, **named))
    assert loaded._guards_code == whole._guards_code
    assert str(loaded.range_constraints) == str(whole.range_constraints)
