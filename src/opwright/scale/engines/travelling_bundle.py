"""Copies a bundle to every machine of a Ray cluster."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.errors import MapError
from opwright.storage.lock import locked

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import BundleFacts

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class TravellingBundle:
    """A bundle that is sent to workers.

    Attributes:
        folder: its folder on the driver's machine, and perhaps on others.
        digest: the SHA-256 of its manifest.
        packed: its files as a tar archive, in Ray's object store.
    """

    folder: Path
    digest: str
    packed: Any

    def here(self) -> Path:
        """The folder of the bundle on this machine: the driver's path if it holds the bundle, else a copy.

        Copies stay in the system's temporary folder for other workers and later maps.

        Raises:
            MapError: the folder for copies belongs to another user.
        """
        if self._is_at(self.folder):
            return self.folder
        copies = Path(tempfile.gettempdir()) / f"opwright-bundles-{os.getuid()}"
        copies.mkdir(mode=0o700, exist_ok=True)
        if copies.is_symlink() or copies.stat().st_uid != os.getuid():
            msg = f"{copies} belongs to another user: remove it, or set TMPDIR to a folder that you own"
            raise MapError(msg)
        copy = copies / self.digest
        with locked(copies / f"{self.digest}.lock"):
            if not self._is_at(copy):
                shutil.rmtree(copy, ignore_errors=True)
                self._unpack(copy)
        return copy

    def _is_at(self, folder: Path) -> bool:
        """Whether the folder holds the bundle with all its files: cleaners of temporary folders may remove some."""
        try:
            text = (folder / _MANIFEST).read_bytes()
            if hashlib.sha256(text).hexdigest() != self.digest:
                return False
            files: dict[str, dict[str, int]] = json.loads(text)["files"]
            return all((folder / name).stat().st_size == facts["bytes"] for name, facts in files.items())
        except OSError:
            return False

    def _unpack(self, copy: Path) -> None:
        import ray

        with tempfile.TemporaryDirectory(dir=copy.parent) as holder:
            draft = Path(holder) / "bundle"
            with tarfile.open(fileobj=io.BytesIO(ray.get(self.packed))) as archive:
                # The first patch releases of Python 3.10 and 3.11 have no filters.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                for member in archive:
                    archive.extract(member, draft)
            draft.rename(copy)


def pack(folder: Path, facts: BundleFacts) -> TravellingBundle:
    """Put a bundle into the object store of the Ray cluster that this process is connected to."""
    import ray

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, arcname=".")
    return TravellingBundle(folder, facts.digest, ray.put(packed.getvalue()))
