"""Reads the manifest of a bundle, and validates everything in it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec

from opwright.bundle.format.limits import FORMAT, MANIFEST_BYTES, SCHEMA_BYTES, TEXT_BYTES
from opwright.bundle.format.manifest import FILE_NAME, FileFacts, Input, Manifest, ModelFile, Output
from opwright.bundle.format.names import WORDS, FilePath, byte_count
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A message of msgspec, with the place at its end, as a JSONPath.
_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<place>[^`]*)`)?", flags=re.DOTALL)
_KEY = re.compile(r"Object (?P<fault>missing required|contains unknown) field `(?P<name>.*)`", flags=re.DOTALL)
_EXPECTED = re.compile(r"Expected (?P<what>.*?)(?:, got `?[\w |]+`?)?", flags=re.DOTALL)
_MOST_DIGITS = 20
_STEP = re.compile(r"\.?(\w+)|\[(\d+)\]")
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_CHOICES = {
    name: " or ".join(map(repr, get_args(hint)))
    for kind, names in ((ModelFile, ("kind", "precision")), (Manifest, ("device",)))
    for name, hint in get_type_hints(kind).items()
    if name in names
}


def read_manifest(text: str | bytes) -> Manifest:
    """Read the manifest in `text`.

    Raises:
        BundleError: the text is not a manifest; the message names the place.
    """
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if len(raw) > MANIFEST_BYTES:
        msg = f"{FILE_NAME} has {len(raw)} bytes: expected at most {MANIFEST_BYTES}"
        raise BundleError(msg)
    try:
        plain = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=_number
        )
    except (ValueError, RecursionError) as error:
        msg = f"{FILE_NAME} is not JSON in UTF-8: {error}. Ship the model again"
        raise BundleError(msg) from error
    if isinstance(plain, dict) and type(plain.get("format")) is int and plain["format"] != FORMAT:
        msg = (
            f"{FILE_NAME} has format {plain['format']}, and this opwright reads format {FORMAT}: ship the model again, "
            "or use the opwright that shipped it"
        )
        raise BundleError(msg)
    if isinstance(plain, dict) and isinstance(plain.get("files"), dict):
        # One by one: inside a dict, msgspec does not report which entry is wrong.
        for path, facts in plain["files"].items():
            read_as(FilePath, path, "a key of files", FILE_NAME)
            read_as(FileFacts, facts, f"files.{path}", FILE_NAME)
    manifest: Manifest = read_as(Manifest, plain, "", FILE_NAME)
    _check_texts(plain)
    _check_files(manifest)
    _check_names(manifest.inputs, "inputs")
    _check_names(manifest.outputs, "outputs")
    _check_equal_dims(manifest)
    return manifest


def read_as(kind: Any, value: Any, place: str, file: str) -> Any:
    """Convert `value`, made of dicts, lists, strings and numbers, to `kind`.

    Args:
        kind: the expected type, which msgspec must support.
        value: the value found.
        place: its place in the whole, separated by dots; empty for the whole.
        file: the file that holds it, for messages.

    Raises:
        BundleError: it is not of this type; the message names the place, what was expected and what was found.
    """
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        raise _explained(str(error), value, place, file) from error
    except UnicodeEncodeError as error:  # a lone surrogate in a key or an enumeration
        msg = f"{f'{file}: {place!r}' if place else file} holds text that UTF-8 cannot encode: {error.object!a:.100}"
        raise BundleError(msg) from error


def _explained(message: str, value: Any, place: str, file: str) -> BundleError:
    """The error in opwright's words, for a message of msgspec about `value`."""
    found = _MESSAGE.fullmatch(message)
    what, inside = (found["what"], found["place"] or "") if found else (message, "")
    steps = [(name, number) for name, number in _STEP.findall(inside)]
    for name, number in steps:
        value = value[name] if name else value[int(number)]
    place = _join(place, inside.removeprefix("."))
    if key := _KEY.fullmatch(what):
        fault = "is missing" if key["fault"].startswith("missing") else "is unknown"
        return BundleError(f"{file}: the key {_join(place, key['name'])!r} {fault}")
    if what.startswith("Invalid enum value"):
        return _unexpected(value, _CHOICES[steps[-1][0]], place, file)
    expected = _EXPECTED.fullmatch(what)
    return _unexpected(value, _plain(expected["what"]) if expected else what, place, file)


def _plain(expected: str) -> str:
    """The type that msgspec expects, in plain words: "`int` >= 0" is a whole number of at least 0."""
    if pattern := re.fullmatch(r"`str` matching regex (.*)", expected, flags=re.DOTALL):
        return next(words for form, words in WORDS.items() if repr(form) == pattern[1])
    named = re.sub(r"`([\w |]+)`", lambda found: " or ".join(_TYPES[one] for one in found[1].split(" | ")), expected)
    return named.replace(" of length <= ", " of at most ").replace(">= ", "of at least ").replace("<= ", "of at most ")


def _unexpected(value: object, expected: str, place: str, file: str) -> BundleError:
    where = f"{file}: {place!r}" if place else file
    return BundleError(f"{where} must be {expected}, got {value!r:.100}")


def _join(place: str, inside: str) -> str:
    return f"{place}{'' if inside.startswith('[') else '.'}{inside}" if place and inside else place or inside


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            msg = f"{FILE_NAME}: the key {key!r} occurs twice"
            raise BundleError(msg)
        found[key] = value
    return found


def _number(digits: str) -> float:
    """A whole number, or a float if it has more digits than any size: the host reads it in the same way."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _refuse_constant(name: str) -> float:
    msg = f"{name} is not a number in JSON"
    raise ValueError(msg)


def _check_texts(plain: dict[str, Any]) -> None:
    """Check the number of bytes of each text: the patterns only limit characters."""
    for place, text in _texts(plain, ""):
        most = SCHEMA_BYTES if place.endswith(".schema") else TEXT_BYTES
        if byte_count(text) > most:
            raise _unexpected(text, f"at most {most} bytes of text", place, FILE_NAME)


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, _join(place, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _texts(inner, f"{place}[{at}]")


def _check_files(manifest: Manifest) -> None:
    named = [manifest.model.file, *(library.file for library in manifest.libraries), *manifest.goldens]
    if manifest.host_program is not None:
        named.append(manifest.host_program)
        # The launcher checks only the digests of host/, and starts this file.
        if not manifest.host_program.startswith("host/"):
            raise _unexpected(manifest.host_program, "null, or a file in host/", "host_program", FILE_NAME)
    for path in named:
        if path not in manifest.files:
            msg = f"{FILE_NAME}: the file {path!r} is referenced, but is not listed in 'files'"
            raise BundleError(msg)


def _check_names(listed: Sequence[Input | Output], place: str) -> None:
    names: set[str] = set()
    for at, one in enumerate(listed):
        if one.name in names:
            raise _unexpected(one.name, "a unique name", f"{place}[{at}].name", FILE_NAME)
        names.add(one.name)


def _check_equal_dims(manifest: Manifest) -> None:
    ranks = {one.name: len(one.dims) for one in manifest.inputs}
    for at, group in enumerate(manifest.equal_dims):
        for number, one in enumerate(group):
            if one.dim >= ranks.get(one.input, 0):
                found = msgspec.to_builtins(one)
                raise _unexpected(found, "a dimension of an input", f"equal_dims[{at}][{number}]", FILE_NAME)
