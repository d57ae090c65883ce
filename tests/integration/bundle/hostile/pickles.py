"""Pickles in every format of PyTorch and NumPy."""

from __future__ import annotations

import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.integration.bundle.hostile.kind import Code, Kind, python


def load_pickle(path: Path) -> None:
    torch.load(path, weights_only=False)


def load_array(path: Path) -> None:
    held = np.load(path, allow_pickle=True)
    if isinstance(held, np.lib.npyio.NpzFile):
        dict(held)


def _plain(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    path.write_bytes(pickle.dumps(Code(python(canary))))


def _saved(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    torch.save({"weight": Code(python(canary))}, path)


def _before_1_6(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    torch.save({"weight": Code(python(canary))}, path, _use_new_zipfile_serialization=False)


def _tar(path: Path, canary: Path, _program: Path, _script: Path) -> None:
    """The format of PyTorch before 0.2."""
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


PICKLES = [
    Kind("a pickle", _plain, load_pickle, ".pt"),
    Kind("a file from torch.save", _saved, load_pickle, ".pth"),
    Kind("a file from torch.save before 1.6", _before_1_6, load_pickle, ".pt"),
    Kind("a file from torch.save before 0.2", _tar, load_pickle, ".pt"),
    Kind("an array of objects", _in_npy, load_array, ".npy"),
    Kind("arrays of objects", _in_npz, load_array, ".npz"),
    Kind("a pickle named like an array", _plain, load_array, ".npy"),
]
