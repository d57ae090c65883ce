"""The stored corpora: one archive per target, in which each input is named by its digest."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
# Inputs that once crashed the host, in one folder per target.
FOUND = Path(__file__).parent / "found"
# In the order of src/opwright/host/cpp/tests/fuzz/target.cpp.
TARGETS = (
    *("manifest", "npy", "npz", "picture", "request_list", "stream"),
    *("options", "golden", "model", "package", "bundle"),
)


def unpack(target: str, folder: Path) -> None:
    """Write a target's corpus and former findings to a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / f"{target}.tar.xz"
    if kept.exists():
        with tarfile.open(kept) as archive:
            for member in archive:
                content = archive.extractfile(member)
                assert content
                (folder / Path(member.name).name).write_bytes(content.read())
    for found in (FOUND / target).glob("*"):
        shutil.copyfile(found, folder / f"found-{found.name}")


def pack(target: str, inputs: list[bytes]) -> None:
    """Store these inputs; equal inputs produce equal archives."""
    named = sorted((len(content), hashlib.sha256(content).hexdigest()[:16], content) for content in inputs)
    with tarfile.open(FOLDER / f"{target}.tar.xz", "w:xz", preset=9) as archive:
        for size, name, content in named:
            member = tarfile.TarInfo(name)
            member.size = size
            archive.addfile(member, io.BytesIO(content))
