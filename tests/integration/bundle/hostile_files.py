"""Files that carry code: each one makes a canary when its code runs, and says what would run it."""

from __future__ import annotations

import ctypes
import io
import json
import os
import pickle
import struct
import subprocess
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

# A module that a hostile file makes Python import.
MODULE = "hostile_module"


class Code:
    """What runs a text of Python when it is unpickled."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.code,)


class Small(nn.Module):
    """Has what an exported program can hold: weights, a constant, sizes that vary, a condition on them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.plain = torch.ones(2)

    def forward(self, x: Tensor, scale: Tensor) -> dict[str, Tensor]:
        wide = self.linear(x) * scale + self.plain
        if x.shape[0] % 5 != 1:
            wide = wide.div(2.0, rounding_mode="floor")
        return {"wide": wide, "rows": torch.ones(x.shape[0] * 2)}


def exported(path: Path) -> Path:
    """An exported program with nothing hostile in it."""
    inputs, shapes = (torch.ones(4, 3), torch.ones(2)), {"x": {0: Dim.DYNAMIC}, "scale": None}
    torch.export.save(torch.export.export(Small().eval(), inputs, dynamic_shapes=shapes), path)
    return path


class Saves(nn.Module):
    """A module that TorchScript compiles; its code is changed in the file."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = 1

    @torch.jit.export
    def __getstate__(self) -> tuple[int, bool]:
        return (self.kept, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[int, bool]) -> None:
        self.kept = state[0]
        self.training = state[1]

    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def scripted(path: Path) -> Path:
    """A TorchScript model with nothing hostile in it, which runs code of its own while it is loaded."""
    script: Any = torch.jit.script
    torch.jit.save(script(Saves().eval()), path)
    return path


Records = dict[str, bytes]


def read(path: Path) -> Records:
    """The records of an archive, by their names inside its folder."""
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def write(path: Path, records: Records) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"model/{name}", data)


def load_exported(path: Path) -> None:
    program = torch.export.load(path)
    positional, named = program.example_inputs
    program.module()(*positional, **named)


def load_script(path: Path) -> None:
    load: Any = torch.jit.load
    load(str(path))(torch.ones(2))


def load_pickle(path: Path) -> None:
    torch.load(path, weights_only=False)


def load_array(path: Path) -> None:
    held = np.load(path, allow_pickle=True)
    if isinstance(held, np.lib.npyio.NpzFile):
        dict(held)


def load_library(path: Path) -> None:
    """Opens the library inside a package, as PyTorch does after it has unpacked it."""
    library = path.with_suffix(".so")
    library.write_bytes(next(data for name, data in read(path).items() if name.endswith(".so")))
    ctypes.CDLL(str(library))


@dataclass(frozen=True)
class Kind:
    """A kind of hostile file.

    Attributes:
        name: what it is.
        make: writes the file, whose code makes the canary at the given path.
        load: the loader that runs the code.
        suffix: the ending of its name.
    """

    name: str
    make: Callable[[Path, Path, Path, Path], None] = field(repr=False)
    load: Callable[[Path], None]
    suffix: str = ".pt2"


def python(canary: Path) -> str:
    """An expression that makes the canary, and fits into other texts: one line, without the other kind of quotes."""
    return f"__import__('pathlib').Path('{canary}').touch()"


def _pickled(canary: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save({"a": Code(python(canary))}, buffer)
    return buffer.getvalue()


def _program(change: Callable[[dict[str, Any], str], object], name: str) -> Kind:
    """A kind in which the JSON of the program is changed."""

    def make(path: Path, canary: Path, program: Path, _script: Path) -> None:
        records = read(program)
        held = json.loads(records["models/model.json"])
        change(held, python(canary))
        write(path, records | {"models/model.json": json.dumps(held).encode()})

    return Kind(name, make, load_exported)


def _records(change: Callable[[Records, Path], Records], name: str) -> Kind:
    """A kind in which the records of the program are changed."""

    def make(path: Path, canary: Path, program: Path, _script: Path) -> None:
        records = read(program)
        write(path, records | change(records, canary))

    return Kind(name, make, load_exported)


def _code(lines: Callable[[Path], str], name: str, *, where: str = "  def __setstate__") -> Kind:
    """A kind in which the code of the TorchScript model is changed: lines are added to a method."""

    def make(path: Path, canary: Path, _program: Path, script: Path) -> None:
        records = read(script)
        (code,) = (name for name in records if name.endswith(".py"))
        text = records[code].decode()
        begin = text.index(":\n", text.index("->", text.index(where))) + 2
        records[code] = (text[:begin] + f"    {lines(canary)}\n" + text[begin:]).encode()
        write(path, records)

    return Kind(name, make, load_script, ".pt")


def _graph(held: dict[str, Any]) -> dict[str, Any]:
    graph: dict[str, Any] = held["graph_module"]["graph"]
    return graph


def _renamed(held: dict[str, Any], code: str) -> None:
    """The name of an input, which PyTorch writes into the text of a function."""
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
    """Makes a call that gives a tensor the first node of the graph."""
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
    """How outputs are nested: the context makes PyTorch import a module."""

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
        **{name: _pickled(canary) for name in records if name.startswith("data/weights/weight_")},
    }


def _constant_in_a_pickle(prefix: str) -> Callable[[Records, Path], Records]:
    def change(records: Records, canary: Path) -> Records:
        listed = json.loads(records["data/constants/model_constants_config.json"])
        name = f"{prefix}0"
        data = pickle.dumps(Code(python(canary))) if prefix == "opaque_obj_" else _pickled(canary)
        for payload in listed["config"].values():
            payload.update(path_name=name, use_pickle=True)
        return {
            "data/constants/model_constants_config.json": json.dumps(listed).encode(),
            f"data/constants/{name}": data,
        }

    return change


def _twice(path: Path, canary: Path, program: Path, _script: Path) -> None:
    """Two records of one name: which of the two is the model depends on who reads."""
    records = read(program)
    hostile = json.loads(records["models/model.json"])
    _guard(hostile, python(canary))
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"model/{name}", data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive.writestr("model/models/model.json", json.dumps(hostile))


def _two_headers(path: Path, canary: Path, program: Path, script: Path) -> None:
    """The name in a record's own header is another one than in the table at the end."""
    next(kind for kind in KINDS if kind.name == "guards").make(path, canary, program, script)
    data = path.read_bytes()
    at = data.index(b"model/models/model.json")
    path.write_bytes(data[:at] + b"model/models/other.json" + data[at + len(b"model/models/model.json") :])


def _behind(path: Path, canary: Path, program: Path, script: Path) -> None:
    """Something behind the archive, which readers pass over."""
    next(kind for kind in KINDS if kind.name == "guards").make(path, canary, program, script)
    path.write_bytes(path.read_bytes() + b"exit\n")


def _entry(name: str, mode: int) -> Callable[[Path, Path, Path, Path], None]:
    """One more entry, which unpacking would write elsewhere; and a guard."""

    def make(path: Path, canary: Path, program: Path, script: Path) -> None:
        next(kind for kind in KINDS if kind.name == "guards").make(path, canary, program, script)
        with zipfile.ZipFile(path, "a") as archive:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, "/etc/passwd")

    return make


def _package(path: Path, canary: Path, program: Path, _script: Path) -> None:
    """A package of AOTInductor's: machine code, which runs when it is opened."""
    source, library = path.with_suffix(".c"), path.with_suffix(".build.so")
    text = (
        f'#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fclose(fopen("{canary}", "w")); }}'
    )
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    write(path, read(program) | {"data/aotinductor/model/model.so": library.read_bytes()})


def _tar(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    """The form of PyTorch before 0.2."""
    with tarfile.open(path, "w") as archive:
        for name in ("pickle", "storages", "tensors", "sys_info"):
            data = pickle.dumps(Code(python(canary)), protocol=2)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _object_array(canary: Path) -> np.ndarray[Any, Any]:
    array = np.empty(1, dtype=object)
    array[0] = Code(python(canary))
    return array


def _in_npy(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    np.save(path, _object_array(canary), allow_pickle=True)


def _in_npz(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    np.savez(path, x=_object_array(canary))


def _plain(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    path.write_bytes(pickle.dumps(Code(python(canary))))


def _before_1_6(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    torch.save({"weight": Code(python(canary))}, path, _use_new_zipfile_serialization=False)


def _saved(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    torch.save({"weight": Code(python(canary))}, path)


def _data(path: Path, canary: Path, _program: Path, script: Path) -> None:
    """A pickle of Python's in the place of TorchScript's, which only Python would run."""
    write(path, read(script) | {"data.pkl": pickle.dumps(Code(python(canary)), protocol=2)})


def _load_data(path: Path) -> None:
    pickle.loads(read(path)["data.pkl"])


_ENUM = json.dumps([{"__enum__": True, "fqn": f"{MODULE}:Kind", "name": "A"}, "rows"])
_FACTORY = {"default_factory_module": MODULE, "default_factory_name": "Kind", "dict_context": ["wide", "rows"]}

KINDS = [
    _program(_guard, "guards"),
    _program(_size, "a size"),
    _program(_renamed, "the name of an input"),
    _program(_operator_of_files, "an operator that writes files"),
    _program(_tree("builtins.dict", _ENUM), "an enumeration among keys"),
    _program(_tree("collections.defaultdict", _FACTORY), "a dict with a factory"),
    _records(lambda _, canary: {"data/sample_inputs/model.pt": _pickled(canary)}, "sample inputs"),
    _records(lambda _, canary: {"data/weights/model.pt": _pickled(canary)}, "weights in one pickle"),
    _records(lambda _, canary: {"data/constants/model.pt": _pickled(canary)}, "constants in one pickle"),
    _records(_weight_in_a_pickle, "a weight"),
    _records(_constant_in_a_pickle("tensor_"), "a constant"),
    _records(_constant_in_a_pickle("opaque_obj_"), "an object"),
    Kind("two records of one name", _twice, load_exported),
    Kind("two headers", _two_headers, load_exported),
    Kind("something behind the archive", _behind, load_exported),
    Kind("an entry in another folder", _entry("model/../../../tmp/x", 0o100644), load_exported),
    Kind("an entry at a fixed place", _entry("model//tmp/x", 0o100644), load_exported),
    Kind("an entry with a backslash", _entry("model/..\\x", 0o100644), load_exported),
    Kind("an entry that is a link", _entry("model/extra/x", 0o120777), load_exported),
    Kind("machine code", _package, load_library),
    _code(lambda canary: f'_9 = torch.save(state, "{canary}")', "TorchScript that saves while it is loaded"),
    _code(lambda canary: f'_9 = torch.save(x, "{canary}")', "TorchScript that saves", where="  def forward"),
    _code(lambda canary: f'_9 = ops.aten.save(x, "{canary}")', "TorchScript by another name", where="  def forward"),
    _code(
        lambda canary: f'x = torch.add(x, torch.from_file("{canary}", True, 2))',
        "TorchScript that maps a file",
        where="  def forward",
    ),
    _code(lambda canary: f'_9 = getattr(torch, "sa" "ve")(state, "{canary}")', "TorchScript with a name in two parts"),
    _code(lambda canary: f'_9 = getattr(torch, "\\163ave")(state, "{canary}")', "TorchScript with a name in numbers"),
    Kind("a pickle in the place of TorchScript's", _data, _load_data, ".pt"),
    Kind("a pickle", _plain, load_pickle, ".pt"),
    Kind("what torch.save wrote", _saved, load_pickle, ".pth"),
    Kind("what torch.save wrote before 1.6", _before_1_6, load_pickle, ".pt"),
    Kind("what torch.save wrote before 0.2", _tar, load_pickle, ".pt"),
    Kind("an array of objects", _in_npy, load_array, ".npy"),
    Kind("arrays of objects", _in_npz, load_array, ".npz"),
    Kind("a pickle that is called an array", _plain, load_array, ".npy"),
]


def without_contents(folder: Path) -> dict[str, Path]:
    """What is at a path without being a file with contents: none may be waited for, or read without end."""
    os.mkfifo(folder / "pipe.pt")
    (folder / "folder.pt").mkdir()
    (folder / "empty.pt").touch()
    (folder / "nowhere.pt").symlink_to(folder / "missing")
    with (folder / "huge.pt").open("wb") as file:
        file.truncate(2**40)
    with (folder / "huge.npy").open("wb") as file:
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }".ljust(117) + b"\n"
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    names = ("pipe.pt", "folder.pt", "empty.pt", "nowhere.pt", "huge.pt", "huge.npy")
    return {"a device": Path("/dev/zero"), **{name: folder / name for name in names}}
