"""Exported programs whose archives mean different things to different readers, or contain machine code."""

from __future__ import annotations

import ctypes
import json
import subprocess
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.integration.bundle.hostile.archive import read, write
from tests.integration.bundle.hostile.kind import Kind, python
from tests.integration.bundle.hostile.programs import GUARDS, load_exported


def load_library(path: Path) -> None:
    """Load the library inside a package, as PyTorch does after it has unpacked it."""
    library = path.with_suffix(".so")
    library.write_bytes(next(data for name, data in read(path).items() if name.endswith(".so")))
    ctypes.CDLL(str(library))


def _twice(path: Path, canary: Path, program: Path, _script: Path) -> None:
    """Two records with one name: which of them is the model depends on the reader."""
    records = read(program)
    hostile = json.loads(records["models/model.json"])
    hostile["guards_code"] = [python(canary)]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"model/{name}", data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive.writestr("model/models/model.json", json.dumps(hostile))


def _two_headers(path: Path, canary: Path, program: Path, script: Path) -> None:
    """The name in a record's own header differs from the one in the table at the end."""
    GUARDS.make(path, canary, program, script)
    data = path.read_bytes()
    at = data.index(b"model/models/model.json")
    path.write_bytes(data[:at] + b"model/models/other.json" + data[at + len(b"model/models/model.json") :])


def _behind(path: Path, canary: Path, program: Path, script: Path) -> None:
    """Data after the archive, which readers ignore."""
    GUARDS.make(path, canary, program, script)
    path.write_bytes(path.read_bytes() + b"exit\n")


def _entry(name: str, mode: int) -> Callable[[Path, Path, Path, Path], None]:
    """An additional entry, which would be unpacked to another place, and a guard."""

    def make(path: Path, canary: Path, program: Path, script: Path) -> None:
        GUARDS.make(path, canary, program, script)
        with zipfile.ZipFile(path, "a") as archive:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, "/etc/passwd")

    return make


def _package(path: Path, canary: Path, program: Path, _script: Path) -> None:
    """An AOTInductor package: machine code, which runs when it is loaded."""
    source, library = path.with_suffix(".c"), path.with_suffix(".build.so")
    text = (
        f'#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fclose(fopen("{canary}", "w")); }}'
    )
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    write(path, read(program) | {"data/aotinductor/model/model.so": library.read_bytes()})


ARCHIVES = [
    Kind("two records of one name", _twice, load_exported),
    Kind("two headers", _two_headers, load_exported),
    Kind("something behind the archive", _behind, load_exported),
    Kind("an entry in another folder", _entry("model/../../../tmp/x", 0o100644), load_exported),
    Kind("an entry at a fixed place", _entry("model//tmp/x", 0o100644), load_exported),
    Kind("an entry with a backslash", _entry("model/..\\x", 0o100644), load_exported),
    Kind("an entry that is a link", _entry("model/extra/x", 0o120777), load_exported),
    Kind("machine code", _package, load_library),
]
