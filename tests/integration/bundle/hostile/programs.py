"""Exported programs with code in their JSON, or in the pickles next to it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.export.pt2_archive import constants

from tests.integration.bundle.hostile.archive import Records, read, write
from tests.integration.bundle.hostile.kind import Code, Kind, pickled, python

# A module that a hostile file makes Python import.
MODULE = "hostile_module"

_ENUM = json.dumps([{"__enum__": True, "fqn": f"{MODULE}:Kind", "name": "A"}, "rows"])
_FACTORY = {"default_factory_module": MODULE, "default_factory_name": "Kind", "dict_context": ["wide", "rows"]}


def load_exported(path: Path) -> None:
    program = torch.export.load(path)
    positional, named = program.example_inputs
    program.module()(*positional, **named)


def _program(change: Callable[[dict[str, Any], str], object], name: str) -> Kind:
    """A kind that changes the JSON of the program."""

    def make(path: Path, canary: Path, program: Path, _script: Path) -> None:
        records = read(program)
        held = json.loads(records["models/model.json"])
        change(held, python(canary))
        write(path, records | {"models/model.json": json.dumps(held).encode()})

    return Kind(name, make, load_exported)


def _records(change: Callable[[Records, Path], Records], name: str, *, runs_here: bool = True) -> Kind:
    """A kind that changes the records of the program."""

    def make(path: Path, canary: Path, program: Path, _script: Path) -> None:
        records = read(program)
        write(path, records | change(records, canary))

    return Kind(name, make, load_exported, runs_here=runs_here)


def _graph(held: dict[str, Any]) -> dict[str, Any]:
    graph: dict[str, Any] = held["graph_module"]["graph"]
    return graph


def _renamed(held: dict[str, Any], code: str) -> None:
    """The name of an input, which PyTorch copies into the source of a function."""
    signature = _signature(held)
    text = json.dumps(held).replace('"scale"', json.dumps(f"scale=[{code}]"))
    held.clear()
    held.update(json.loads(text))
    held["graph_module"]["module_call_graph"][0]["signature"] = signature


def _guard(held: dict[str, Any], code: str) -> None:
    held["guards_code"] = [code]


def _size(held: dict[str, Any], code: str) -> None:
    for meta in _graph(held)["tensor_values"].values():
        for size in meta["sizes"]:
            if "as_expr" in size:
                size["as_expr"]["expr_str"] = code


def _first(held: dict[str, Any], target: str, *arguments: tuple[str, dict[str, Any], int]) -> None:
    """Insert a call that returns a tensor as the first node of the graph."""
    graph = _graph(held)
    graph["nodes"].insert(
        0,
        {
            "target": target,
            "inputs": [{"name": name, "arg": given, "kind": kind} for name, given, kind in arguments],
            "outputs": [{"as_tensor": {"name": "called"}}],
            "metadata": {},
            "name": "called",
            "is_hop_single_tensor_return": None,
        },
    )
    graph["tensor_values"]["called"] = {
        "dtype": 7,
        "sizes": [{"as_int": 4}],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": 1}],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def _operator_of_files(held: dict[str, Any], code: str) -> None:
    canary = code.partition("Path('")[2].partition("'")[0]
    shared, size = ("shared", {"as_bool": True}, 1), ("size", {"as_int": 4}, 1)
    _first(held, "torch.ops.aten.from_file.default", ("filename", {"as_string": canary}, 1), shared, size)


def _signature(held: dict[str, Any]) -> dict[str, Any]:
    signature: dict[str, Any] = held["graph_module"]["module_call_graph"][0]["signature"]
    return signature


def _tree(kind: str, context: object) -> Callable[[dict[str, Any], str], None]:
    """The nesting of outputs, whose context makes PyTorch import a module."""

    def change(held: dict[str, Any], _code: str) -> None:
        signature = _signature(held)
        protocol, tree = json.loads(signature["out_spec"])
        tree.update(type=kind, context=context)
        signature["out_spec"] = json.dumps([protocol, tree])

    return change


def _weight_in_a_pickle(records: Records, canary: Path) -> Records:
    listed = json.loads(records["data/weights/model_weights_config.json"])
    for payload in listed["config"].values():
        payload["use_pickle"] = True
    return {
        "data/weights/model_weights_config.json": json.dumps(listed).encode(),
        **{name: pickled(canary) for name in records if name.startswith("data/weights/weight_")},
    }


def _constant_in_a_pickle(prefix: str) -> Callable[[Records, Path], Records]:
    def change(records: Records, canary: Path) -> Records:
        listed = json.loads(records["data/constants/model_constants_config.json"])
        name = f"{prefix}0"
        data = pickle.dumps(Code(python(canary))) if prefix == "opaque_obj_" else pickled(canary)
        for payload in listed["config"].values():
            payload.update(path_name=name, use_pickle=True)
        return {
            "data/constants/model_constants_config.json": json.dumps(listed).encode(),
            f"data/constants/{name}": data,
        }

    return change


GUARDS = _program(_guard, "guards")
PROGRAMS = [
    GUARDS,
    _program(_size, "a size"),
    _program(_renamed, "the name of an input"),
    _program(_operator_of_files, "an operator that writes files"),
    _program(_tree("builtins.dict", _ENUM), "an enumeration among keys"),
    _program(_tree("collections.defaultdict", _FACTORY), "a dict with a factory"),
    _records(lambda _, canary: {"data/sample_inputs/model.pt": pickled(canary)}, "sample inputs"),
    _records(lambda _, canary: {"data/weights/model.pt": pickled(canary)}, "weights in one pickle"),
    _records(lambda _, canary: {"data/constants/model.pt": pickled(canary)}, "constants in one pickle"),
    _records(_weight_in_a_pickle, "a weight"),
    _records(_constant_in_a_pickle("tensor_"), "a constant"),
    _records(
        _constant_in_a_pickle("opaque_obj_"), "an object", runs_here=hasattr(constants, "OPAQUE_OBJ_FILENAME_PREFIX")
    ),
]
