"""The kinds of text in a manifest: names, paths, releases and digests, each with its pattern and its description."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

from opwright.bundle.format.limits import SCHEMA_BYTES, TEXT_BYTES
from opwright.errors import BundleError

# The patterns also reject lone surrogates, which JSON can hold and UTF-8 cannot.
_LETTER = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]"
_PART = r"(?!\.\.?(?:/|\Z))[A-Za-z0-9._+-]+"
_TEXT_FORM = rf"^{_LETTER}{{1,{TEXT_BYTES}}}\Z"
_SCHEMA_FORM = rf"^{_LETTER}{{1,{SCHEMA_BYTES}}}\Z"
_PATH_FORM = rf"^(?=.{{1,{TEXT_BYTES}}}\Z){_PART}(?:/{_PART})*\Z"
_RELEASE_FORM = r"^[0-9]{1,4}\.[0-9]{1,4}\Z"
_ARCHITECTURE_FORM = r"^[0-9]{1,4}\.[0-9]{1,4}(\+PTX)?\Z"
_DIGEST_FORM = r"^[0-9a-f]{64}\Z"

Text = Annotated[str, Meta(pattern=_TEXT_FORM)]
Schema = Annotated[str, Meta(pattern=_SCHEMA_FORM)]
FilePath = Annotated[str, Meta(pattern=_PATH_FORM)]
Release = Annotated[str, Meta(pattern=_RELEASE_FORM)]
Architecture = Annotated[str, Meta(pattern=_ARCHITECTURE_FORM)]
Digest = Annotated[str, Meta(pattern=_DIGEST_FORM)]

_TEXT_WORDS = f"1 to {TEXT_BYTES} bytes of text without control characters"
_PATH_WORDS = (
    f"a path inside the bundle: at most {TEXT_BYTES} bytes, in parts separated by /, each of letters, digits and "
    "._+-, and none of them . or .."
)
# The descriptions that messages use, keyed by pattern.
WORDS = {
    _TEXT_FORM: _TEXT_WORDS,
    _SCHEMA_FORM: f"1 to {SCHEMA_BYTES} bytes of text without control characters",
    _PATH_FORM: _PATH_WORDS,
    _RELEASE_FORM: "a release such as 2.13",
    _ARCHITECTURE_FORM: "a compute capability such as 9.0 or 9.0+PTX",
    _DIGEST_FORM: "64 hexadecimal digits in lower case",
}


def check_path(path: str) -> None:
    """Check that `path` stays inside the bundle and has only allowed characters.

    Raises:
        BundleError: it does not.
    """
    if not re.match(_PATH_FORM, path):
        msg = f"the path {path!r:.300} cannot be in a bundle: expected {_PATH_WORDS}"
        raise BundleError(msg)


def check_name(name: object, what: str) -> None:
    """Check that `name` is 1 to 255 bytes of text without control characters.

    Args:
        name: the value found as a name.
        what: what has that name, for the message.

    Raises:
        BundleError: it is not.
    """
    if not isinstance(name, str) or not re.match(_TEXT_FORM, name) or byte_count(name) > TEXT_BYTES:
        msg = f"{what} is {name!r:.300}: expected {_TEXT_WORDS}"
        raise BundleError(msg)


def byte_count(text: str) -> int:
    """The number of bytes that `text` has in UTF-8."""
    return len(text.encode(errors="surrogatepass"))
