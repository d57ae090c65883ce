"""What may stand in a bundle as the name of a thing, and as the path of a file."""

from __future__ import annotations

import re
import unicodedata

from opwright.errors import BundleError

_PART = re.compile(r"[A-Za-z0-9._+-]+")
_LONGEST_NAME = 255


def check_path(path: str) -> None:
    """Check that `path` stays in the bundle.

    Raises:
        BundleError: it does not, or holds other characters than those that are allowed.
    """
    parts = path.split("/")
    if not all(_PART.fullmatch(part) and part not in {".", ".."} for part in parts):
        msg = (
            f"the path {path!r} cannot be in a bundle: expected parts divided by /, each of letters, digits and ._+-, "
            "and none of them . or .."
        )
        raise BundleError(msg)


def check_name(name: str, what: str) -> None:
    """Check that `name` is 1 to 255 bytes of text without control characters.

    Raises:
        BundleError: it is not.
    """
    size = len(name.encode(errors="surrogatepass"))
    if not 1 <= size <= _LONGEST_NAME or any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in name):
        msg = f"{what} is {name!r}: expected 1 to {_LONGEST_NAME} bytes of text without control characters"
        raise BundleError(msg)
