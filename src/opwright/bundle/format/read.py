"""Reads the manifest of a bundle, and takes nothing in it for granted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from opwright.bundle.format.manifest import FILE_NAME, FORMAT, MOST_BYTES, Dimension, Input, Manifest, Output
from opwright.bundle.format.names import check_name, check_path
from opwright.bundle.strict import read_as, unexpected
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHA256 = re.compile(r"[0-9a-f]{64}")


def read_manifest(text: str | bytes) -> Manifest:
    """The manifest that `text` holds.

    Raises:
        BundleError: it is not one; the message names the place.
    """
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > MOST_BYTES:
        msg = f"{FILE_NAME} has {len(raw)} bytes: expected at most {MOST_BYTES}"
        raise BundleError(msg)
    try:
        told = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        msg = f"{FILE_NAME} is not JSON in UTF-8: {error}. Ship the model again"
        raise BundleError(msg) from error
    if isinstance(told, dict) and type(told.get("format")) is int and told["format"] != FORMAT:
        msg = f"{FILE_NAME} has format {told['format']}, and this opwright reads format {FORMAT}: use the one it is of"
        raise BundleError(msg)
    manifest: Manifest = read_as(Manifest, told, "", FILE_NAME)
    _check_files(manifest)
    _check_tensors(manifest.inputs, "inputs")
    _check_tensors(manifest.outputs, "outputs")
    ranks = {one.name: len(one.dims) for one in manifest.inputs}
    for at, place in ((at, place) for at, places in enumerate(manifest.tied) for place in places):
        if not 0 <= place.dimension < ranks.get(place.input, 0):
            raise unexpected(place, "a dimension of an input", place=f"tied[{at}]", file=FILE_NAME)
    if manifest.tolerance < 0:
        raise unexpected(manifest.tolerance, "0 or more", place="tolerance", file=FILE_NAME)
    return manifest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            msg = f"{FILE_NAME}: the key {key!r} comes twice"
            raise BundleError(msg)
        found[key] = value
    return found


def _no_number(name: str) -> float:
    msg = f"{name} is no number there"
    raise ValueError(msg)


def _check_files(manifest: Manifest) -> None:
    named = [manifest.model.file, *(library.file for library in manifest.libraries), *manifest.goldens]
    if manifest.runtime is not None:
        named.append(manifest.runtime)
    for path in [*manifest.files, *named]:
        check_path(path)
        if path not in manifest.files:
            msg = f"{FILE_NAME}: the file {path!r} is named, and is not in 'files'"
            raise BundleError(msg)
    for path, facts in manifest.files.items():
        place = f"files.{path}"
        if facts.bytes < 0:
            raise unexpected(facts.bytes, "0 or more", place=f"{place}.bytes", file=FILE_NAME)
        if not _SHA256.fullmatch(facts.sha256):
            raise unexpected(facts.sha256, "64 hexadecimal digits", place=f"{place}.sha256", file=FILE_NAME)


def _check_tensors(listed: Sequence[Input | Output], place: str) -> None:
    names: set[str] = set()
    for at, one in enumerate(listed):
        check_name(one.name, f"{FILE_NAME}: '{place}[{at}].name'")
        if one.name in names:
            raise unexpected(one.name, "a name of its own", place=f"{place}[{at}].name", file=FILE_NAME)
        names.add(one.name)
        for number, dim in enumerate(one.dims):
            least, most = (dim.min, dim.max) if isinstance(dim, Dimension) else (dim or 0, None)
            if least < 0 or (most is not None and most < least):
                where = f"{place}[{at}].dims[{number}]"
                raise unexpected(dim, "0 or more, and min no larger than max", place=where, file=FILE_NAME)
